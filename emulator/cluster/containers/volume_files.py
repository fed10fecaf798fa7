"""``NodeFiles`` of a project whose volumes this process cannot see: a helper container accesses them.

The container runs ``volume_program`` from the nodes' own image, as their user and without a network. It ends when the
connection to it does, and carries the labels of everything that a harness makes.
"""

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar, cast, get_type_hints

import docker
import msgspec
import requests
from docker.errors import DockerException
from docker.models.containers import Container
from docker.types import LogConfig, Mount

from laststand.emulator.cluster.containers import volume_messages
from laststand.emulator.cluster.containers.engine import CONFINED, EngineError
from laststand.emulator.cluster.node_files import AnyFileWork, FileWork
from laststand.emulator.core.errors import InvariantError, StorageError
from laststand.emulator.core.types import NodeId

ResultT = TypeVar("ResultT")

_WHAT: Final = "helper container of the volumes"
_ANSWER_TIMEOUT_S: Final = 60.0
_HEADER: Final = struct.Struct(">BxxxI")
"""The header of a piece of a container's output: the stream, and the number of bytes."""

_STDOUT: Final = 1
_FOLDERS: Final = ("events", "history", "nodes")


class VolumesTakenError(Exception):
    """Another harness has the volumes."""


class VolumeFiles:
    """Files in volumes, and a copy of all events and histories in the run's own directory.

    Args:
        client: of the engine.
        image: of the nodes.
        name: of the helper container.
        labels: of the helper container.
        mounts: the volumes.
        run: the run's directory.
        run_there: the run directory in the nodes' containers.
        on_end: called from another thread, with the reason, if the helper container ends by itself.

    Raises:
        VolumesTakenError: another harness is attached.
        DockerException: the engine refused.
        EngineError: the program in the image did not begin.
    """

    def __init__(
        self,
        client: docker.DockerClient,
        *,
        image: str,
        name: str,
        labels: Mapping[str, str],
        mounts: list[Mount],
        run: Path,
        run_there: str,
        on_end: Callable[[str], None],
    ) -> None:
        self._run = run
        self._on_end = on_end
        self._numbers = count()
        self._awaited: dict[int, Future[bytes]] = {}
        self._begun: Future[bool] = Future()
        self._sending = threading.Lock()
        self._errors = b""
        self._is_closing = False
        self._container: Container = client.containers.create(
            image,
            ["python", "-m", "laststand.emulator.cluster.containers.volume_program", run_there],
            name=name,
            labels=dict(labels),
            mounts=mounts,
            network_disabled=True,
            stdin_open=True,
            auto_remove=True,
            log_config=LogConfig(type="none"),
            **CONFINED,
        )
        try:
            self._connection = _attach(client, str(self._container.id))
            self._container.start()
            self._reader = threading.Thread(target=self._read, name="volumes", daemon=True)
            self._reader.start()
            self._send(
                volume_messages.Begin(
                    sizes={path.name: path.stat().st_size for path in volume_messages.shown_files(run)}
                )
            )
            if not self._begun.result(_ANSWER_TIMEOUT_S):
                raise VolumesTakenError
        except BaseException:
            self._remove()
            raise

    def perform(self, work: FileWork[ResultT]) -> ResultT:
        """Has the work done in the helper container.

        Raises:
            StorageError: a file cannot be read or changed, or the helper container has ended.
        """
        content = self._ask(lambda number: volume_messages.DoWork(number=number, work=cast(AnyFileWork, work)))
        result = get_type_hints(type(work).perform)["return"]
        return cast(ResultT, msgspec.msgpack.decode(content, type=result))

    def catch_up(self) -> None:
        """Waits until everything that was written so far is copied."""
        self._ask(lambda number: volume_messages.CatchUp(number=number))

    def close(self, ended: tuple[NodeId, ...]) -> None:
        """Copies the logs of nodes that have ended, and ends the access to the volumes.

        Raises:
            StorageError: something could not be copied.
        """
        try:
            self.catch_up()
            for node_id in ended:
                self._ask(lambda number, node_id=node_id: volume_messages.CopyLogs(number=number, node_id=node_id))  # type: ignore[misc]
        finally:
            self._is_closing = True
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_WR)
            self._reader.join(_ANSWER_TIMEOUT_S)
            self._remove()

    def _remove(self) -> None:
        self._is_closing = True
        with suppress(DockerException, requests.RequestException):  # it removes itself
            self._container.remove(force=True)

    def _ask(self, order: Callable[[int], volume_messages.Order]) -> bytes:
        number = next(self._numbers)
        answer: Future[bytes] = Future()
        self._awaited[number] = answer
        try:
            self._send(order(number))
            return answer.result(_ANSWER_TIMEOUT_S)
        except (OSError, TimeoutError) as error:
            raise StorageError(path=_WHAT, reason=str(error) or "no answer") from None
        finally:
            self._awaited.pop(number, None)

    def _send(self, order: volume_messages.Order) -> None:
        with self._sending:
            self._connection.sendall(volume_messages.encode(order))

    # --- In the reader's thread ------------------------------------------------------------------------------------

    def _read(self) -> None:
        splitter = volume_messages.Splitter()
        reason = "it ended"
        try:
            for piece in self._pieces():
                for message in splitter.messages(piece):
                    self._note(volume_messages.ANSWERS.decode(message))
        except (OSError, msgspec.MsgspecError) as error:
            reason = str(error)
        if self._errors.strip():
            reason = self._errors.decode(errors="replace").strip().splitlines()[-1]
        if not self._begun.done():
            self._begun.set_exception(EngineError(what=_WHAT, reason=reason))
        elif not self._is_closing:
            self._on_end(f"the {_WHAT} is gone: {reason}")
        for answer in list(self._awaited.values()):
            answer.set_exception(StorageError(path=_WHAT, reason=reason))

    def _pieces(self) -> Iterator[bytes]:
        with self._connection.makefile("rb") as stream:
            while len(header := stream.read(_HEADER.size)) == _HEADER.size:
                kind, length = _HEADER.unpack(header)
                content = stream.read(length)
                if kind == _STDOUT:
                    yield content
                else:
                    self._errors = (self._errors + content)[-4096:]

    def _note(self, answer: volume_messages.Answer) -> None:
        match answer:
            case volume_messages.Begun() | volume_messages.Taken():
                self._begun.set_result(isinstance(answer, volume_messages.Begun))
            case volume_messages.Written():
                self._write(answer)
            case volume_messages.Done(number=number, result=result):
                if number in self._awaited:
                    self._awaited[number].set_result(bytes(result))
            case volume_messages.Failed(number=number, path=path, reason=reason):
                if number in self._awaited:
                    self._awaited[number].set_exception(StorageError(path=path, reason=reason))

    def _write(self, written: volume_messages.Written) -> None:
        place = PurePosixPath(written.path)
        if place.parts[:1] not in [(folder,) for folder in _FOLDERS] or ".." in place.parts:
            raise InvariantError(f"a file outside the run's folders: {written.path}")
        path = self._run / place
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+b" if path.exists() and written.offset else "wb") as file:
            file.seek(written.offset)
            file.write(written.content)


def _attach(client: docker.DockerClient, container_id: str) -> socket.socket:
    """Returns a connection to a container that is not started yet: its input, and its output in pieces."""
    parameters = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    attached = client.api.attach_socket(container_id, params=parameters)
    connection = cast(socket.socket, getattr(attached, "_sock", attached))
    connection.settimeout(None)
    return connection

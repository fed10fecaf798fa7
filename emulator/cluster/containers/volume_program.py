"""``python -m laststand.emulator.cluster.containers.volume_program RUN``: shows a harness the volumes of its project.

It runs in a container with the project's volumes, as the user of the nodes, and does to their files what the harness
asks for (``volume_messages``). New events, and histories of clients of Kafka, are shown as nodes write them, and so is
the transaction log of a ZooKeeper server. It ends with its input, and so with its harness, however that ends.
"""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, assert_never

import msgspec

from laststand.emulator.cluster.containers import volume_messages
from laststand.emulator.cluster.containers.labels import HarnessLock
from laststand.emulator.cluster.layout import data_directory
from laststand.emulator.core.errors import InvariantError, StorageError
from laststand.emulator.zookeeper.transaction_log import LOG_FOLDER

_LOOK_INTERVAL_S: Final = 0.05
_PIECE_BYTES: Final = 1 << 20
_SERVER_LOGS: Final = f"nodes/*/data/{LOG_FOLDER}/log.*"
"""A ZooKeeper server writes no events: the harness writes them, from these."""


class VolumeProgram:
    """Obeys one harness.

    Args:
        run: the run's directory in this container.
        orders: from the harness.
        answers: the stream for answers to the harness.
    """

    def __init__(self, run: Path, orders: BinaryIO, answers: BinaryIO) -> None:
        self._run = run
        self._orders = orders
        self._answers = answers
        self._answering = threading.Lock()
        self._showing = threading.Lock()
        self._shown: dict[str, int] = {}
        self._is_over = threading.Event()

    def obey(self) -> None:
        """Obeys orders until there are no more."""
        orders = self._read()
        begin = next(orders, None)
        if not isinstance(begin, volume_messages.Begin):
            return
        events = self._run / "events"
        try:
            lock = HarnessLock(events)
        except (BlockingIOError, PermissionError):  # one that is root makes the file its own
            self._answer(volume_messages.Taken())
            return
        (events / volume_messages.ATTACHED_MARK).touch()
        self._shown.update(begin.sizes)
        self._show_events()
        self._answer(volume_messages.Begun())
        following = threading.Thread(target=self._follow)
        following.start()
        try:
            for order in orders:
                self._obey(order)
        finally:
            self._is_over.set()
            following.join()
            lock.release()

    def _obey(self, order: volume_messages.Order) -> None:
        match order:
            case volume_messages.Begin():
                raise InvariantError("begun twice")
            case volume_messages.CatchUp(number=number):
                self._show_events()
                self._answer(volume_messages.Done(number=number, result=_encoded(None)))
            case volume_messages.DoWork(number=number, work=work):
                try:
                    self._answer(volume_messages.Done(number=number, result=_encoded(work.perform(self._run))))
                except StorageError as error:
                    self._answer(volume_messages.Failed(number=number, path=error.path, reason=error.reason))
                except OSError as error:
                    self._answer(
                        volume_messages.Failed(
                            number=number, path=str(error.filename), reason=error.strerror or str(error)
                        )
                    )
            case volume_messages.CopyLogs(number=number, node_id=node_id):
                try:
                    for path in sorted(data_directory(self._run, node_id).rglob("*")):
                        if path.is_file():
                            self._show(path, begin=0)
                    self._answer(volume_messages.Done(number=number, result=_encoded(None)))
                except OSError as error:
                    self._answer(
                        volume_messages.Failed(
                            number=number, path=str(error.filename), reason=error.strerror or str(error)
                        )
                    )
            case _:
                assert_never(order)

    def _follow(self) -> None:
        while not self._is_over.wait(_LOOK_INTERVAL_S):
            self._show_events()

    def _show_events(self) -> None:
        with self._showing:
            for path in (*volume_messages.shown_files(self._run), *sorted(self._run.glob(_SERVER_LOGS))):
                self._shown[path.name] = self._show(path, begin=self._shown.get(path.name, 0))

    def _show(self, path: Path, *, begin: int) -> int:
        """Sends a file's content from a byte on, and an empty file as empty; returns its size."""
        name = str(path.relative_to(self._run))
        with path.open("rb") as file:
            end = file.seek(begin)
            while (piece := file.read(_PIECE_BYTES)) or end == 0:
                self._answer(volume_messages.Written(path=name, offset=end, content=piece))
                end += len(piece)
                if not piece:
                    break
        return end

    def _answer(self, answer: volume_messages.Answer) -> None:
        with self._answering:
            self._answers.write(volume_messages.encode(answer))
            self._answers.flush()

    def _read(self) -> Iterator[volume_messages.Order]:
        splitter = volume_messages.Splitter()
        while piece := self._orders.read1():  # type: ignore[attr-defined]  # of the buffered reader that it is
            yield from map(volume_messages.ORDERS.decode, splitter.messages(piece))


def _encoded(result: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(result))


if __name__ == "__main__":
    VolumeProgram(Path(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer).obey()

"""Commands' connections to the supervisor of a standing cluster: find its directory, connect, send a command."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from laststand.chaos.standing import messages
from laststand.chaos.standing.names import all_registered, registered
from laststand.chaos.standing.order import ORDER_FILE, SOCKET_FILE, STANDING, read_order
from laststand.chaos.standing.socket import short_path
from laststand.chaos.standing.state import Ended, read_state
from laststand.chaos.standing.status import StatusReport
from laststand.emulator.core.errors import EmulatorError, suggestion
from laststand.emulator.core.types import BrokerId, TopicPartition
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.path_words import LATEST
from laststand.emulator.storage.replica_view import ReplicaView

DEFAULT_STORE: Final = Path("store")
"""The store of standing clusters unless an option names another."""


class NoClusterError(EmulatorError):
    """There is no cluster at that place, or it refused a command; the text says what to do."""


class SupervisorLostError(EmulatorError):
    """The supervisor did not answer to the end: it was killed, or this is a bug."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            f"the supervisor gave no answer; see {directory / 'run.log'}, and: laststand status {directory}"
        )
        self.directory = directory


def find_standing(place: Path) -> Path:
    """Returns the directory of a standing cluster, links resolved.

    Args:
        place: the directory itself; a store or a cluster's folder in it, for the latest cluster there; or the name of a
            cluster, in ``DEFAULT_STORE`` or, if that has none, in the store in which the name was used last.

    Raises:
        NoClusterError: the place is none of these.
    """
    named = DEFAULT_STORE / STANDING / place
    for directory in (place, place / LATEST, *find_all(place)[-1:], named / LATEST):
        if (directory / ORDER_FILE).is_file():
            return directory.resolve()
    elsewhere = registered(str(place))
    if elsewhere is not None and (elsewhere / ORDER_FILE).is_file():
        return elsewhere
    near = suggestion(str(place), [each.parent.name for each in all_registered()])
    raise NoClusterError(
        f"no standing cluster in {place}; start one with: laststand up (laststand ps lists them){near}"
    )


def find_all(store: Path) -> tuple[Path, ...]:
    """Returns the directories of all standing clusters of a store, the oldest first."""
    folder = store / STANDING
    found = (*folder.glob(f"*/{ORDER_FILE}"), *folder.glob(f"*/*/{ORDER_FILE}"))
    directories = {path.parent.resolve() for path in found}
    return tuple(sorted(directories, key=lambda directory: directory.name))


def is_standing(directory: Path) -> bool:
    """Returns whether a cluster's supervisor listens."""
    try:
        with _connected(directory):
            return True
    except NoClusterError:
        return False


def ask(directory: Path, command: messages.Command) -> Iterator[messages.Answer]:
    """Sends a command and yields its answers as they come.

    Raises:
        NoClusterError: no supervisor listens there, or it refused.
        SupervisorLostError: the supervisor ended before the first answer.
    """
    answered = False
    with _connected(directory) as connection, connection.makefile("rwb") as stream:
        try:
            stream.write(messages.encode_line(command))
            stream.flush()
            for line in stream:
                answered = True
                answer = messages.decode_answer(line)
                if isinstance(answer, messages.Refused):
                    raise NoClusterError(answer.reason)
                yield answer
        except OSError:
            raise SupervisorLostError(directory) from None
    if not answered:
        raise SupervisorLostError(directory)


def status_of(directory: Path) -> StatusReport:
    """Returns the status of a standing cluster.

    Raises:
        NoClusterError: no supervisor listens there.
        SupervisorLostError: the supervisor ended meanwhile.
    """
    for answer in ask(directory, messages.GetStatus()):
        if isinstance(answer, messages.Status):
            return answer.report
    raise SupervisorLostError(directory)


def replica_of(directory: Path, broker_id: BrokerId, partition: TopicPartition) -> ReplicaView | None:
    """Returns a broker's files of a partition in a standing cluster; ``None`` if the broker has no log of it.

    Raises:
        NoClusterError: no supervisor listens there, or the files cannot be read.
        SupervisorLostError: the supervisor ended meanwhile.
    """
    for answer in ask(directory, messages.LookAtReplica(broker_id=broker_id, partition=partition)):
        if isinstance(answer, messages.ReplicaSeen):
            return answer.view
    raise SupervisorLostError(directory)


def not_connected(directory: Path, error: OSError) -> NoClusterError:
    """Returns the meaning of a failed connection to the supervisor."""
    state = read_state(directory)
    again = f"start it again with: laststand start {directory}"
    if not isinstance(error, FileNotFoundError):
        reason = (
            f"the supervisor of the cluster in {directory} is gone ({SOCKET_FILE} is a leftover), "
            f"{_what_is_left(directory)}; {again}, or verify what it left with: laststand verify {directory}"
        )
    elif state is not None and state.ended is Ended.STOPPED:
        reason = f"the cluster in {directory} was stopped; {again}"
    else:
        reason = f"the cluster in {directory} was taken down; verify it with: laststand verify {directory}"
    return NoClusterError(reason)


def _what_is_left(directory: Path) -> str:
    """Describes whether nodes of a killed supervisor still exist."""
    order = read_order(directory)
    if order.driver is not DriverName.DOCKER:
        return "and every process of the cluster with it"
    if order.project is not None:
        return f"and its nodes run on until the compose project {order.project} is taken down"
    return f"and its containers may run on; remove them with: laststand down {directory}"


def _connected(directory: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_path(directory) as path:
            connection.connect(path)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        connection.close()
        raise not_connected(directory, error) from None
    return connection

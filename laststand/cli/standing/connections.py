"""Shared by the verbs for a standing cluster: the option for its directory, and connections to supervisor and nodes."""

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from laststand.cli.options.completion import complete_clusters
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.failure import CommandFailedError
from laststand.cli.program.user_error import UserError
from laststand.emulator.core.errors import ConfigError, EmulatorError, suggestion

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from laststand.chaos.standing import messages
    from laststand.chaos.standing.status import StatusReport
    from laststand.emulator.client.admin import AdminClient
    from laststand.emulator.client.admin_error import AdminError
    from laststand.emulator.core.errors import ErrorCode
    from laststand.emulator.core.types import NodeId, TopicPartition

ResultT = TypeVar("ResultT")

_SESSIONS_AWAITED: Final = 3
_MS_PER_S: Final = 1000
_LOOK_INTERVAL_S: Final = 0.2
_CREATED_WITHIN_S: Final = 10.0

DEFAULT_STORE: Final = Path("store")
"""The store of standing clusters unless an option names another."""

_PLACE_HELP: Final = "The cluster: its name, its directory, or a store, for the latest cluster in it."

directory_option = click.option(
    "--dir",
    "place",
    type=click.Path(path_type=Path),
    default=DEFAULT_STORE,
    show_default="the latest in store/",
    metavar="CLUSTER",
    shell_complete=complete_clusters,
    help=_PLACE_HELP,
)
"""Adds ``--dir``; the function gets ``place``, for ``locate``."""


def directory_argument(function: Callable[..., ResultT]) -> Callable[..., ResultT]:
    """Adds an optional argument CLUSTER, and the option ``--dir``; the function gets ``place``."""

    @click.argument(
        "argument_place",
        type=click.Path(path_type=Path),
        required=False,
        metavar="[CLUSTER]",
        shell_complete=complete_clusters,
    )
    @click.option(
        "--dir",
        "option_place",
        type=click.Path(path_type=Path),
        show_default="the latest in store/",
        metavar="CLUSTER",
        shell_complete=complete_clusters,
        help=_PLACE_HELP,
    )
    @functools.wraps(function)
    def with_place(*, argument_place: Path | None, option_place: Path | None, **arguments: object) -> ResultT:
        if argument_place is not None and option_place is not None:
            raise UserError("give the cluster once: as the argument, or with --dir")
        return function(place=argument_place or option_place or DEFAULT_STORE, **arguments)

    return with_place


def locate(place: Path) -> Path:
    """Returns the directory of a standing cluster, up or down.

    Raises:
        UserError: there is no such cluster.
    """
    from laststand.chaos.standing.link import NoClusterError, find_standing

    try:
        return find_standing(place)
    except NoClusterError as error:
        raise UserError(str(error)) from None


def era_of(directory: Path) -> str:
    """Returns the era of a standing cluster, up or down."""
    from laststand.chaos.standing.order import read_order

    return read_order(directory).era


def ask(directory: Path, command: "messages.Command") -> "Iterator[messages.Answer]":
    """Sends a command to the supervisor and yields its answers.

    Raises:
        UserError: no supervisor listens, or it refused.
        CommandFailedError: the supervisor ended meanwhile.
    """
    from laststand.chaos.standing import link

    with _translated_errors():
        yield from link.ask(directory, command)


@contextlib.contextmanager
def _translated_errors() -> "Iterator[None]":
    """Converts errors of the connection to a supervisor into those of a command."""
    from laststand.chaos.standing import link

    try:
        yield
    except link.NoClusterError as error:
        raise UserError(str(error)) from None
    except link.SupervisorLostError as error:
        raise CommandFailedError(str(error)) from None


def status_of(directory: Path) -> "StatusReport":
    """Returns the status of a standing cluster.

    Raises:
        UserError: the cluster is down.
        CommandFailedError: the cluster went down meanwhile.
    """
    from laststand.chaos.standing import link

    with _translated_errors():
        return link.status_of(directory)


def end_cluster(directory: Path, command: "messages.TakeDown | messages.StopCluster") -> str | None:
    """Ends a standing cluster, reports its phases on stderr, and returns what will make the verdict unknown, if any.

    Raises:
        UserError: the cluster is down.
        CommandFailedError: the supervisor ended before the cluster.
    """
    from laststand.chaos.standing import messages

    started = time.monotonic()
    taken_down = None
    for answer in ask(directory, command):  # up to the end of the connection: until then the supervisor still listens
        if isinstance(answer, messages.DownPhase):
            click.echo(f"[{time.monotonic() - started:6.1f} s] {answer.text}", err=True)
        elif isinstance(answer, messages.TakenDown):
            taken_down = answer
    if taken_down is None:
        raise lost(directory)
    return taken_down.problem


def status_when_noticed(directory: Path) -> "StatusReport":
    """Returns the status of a standing cluster once the controller has noticed which brokers are down or paused.

    Raises:
        UserError: the cluster is down.
        CommandFailedError: the cluster went down meanwhile, or the controller did not notice in time.
    """
    deadline: float | None = None
    while True:
        report = status_of(directory)
        unnoticed = unnoticed_brokers(report)
        if not unnoticed:
            return report
        if deadline is None:
            deadline = time.monotonic() + _SESSIONS_AWAITED * report.session_timeout_ms / _MS_PER_S
            ids = ", ".join(map(str, unnoticed))
            click.echo(f"waiting until the sessions of brokers {ids} have ended; --no-wait does not", err=True)
        elif time.monotonic() > deadline:
            raise CommandFailedError(
                f"the controller has not fenced brokers {unnoticed}, which do not run", exit_code=ExitCode.UNKNOWN
            )
        time.sleep(_LOOK_INTERVAL_S)


def unnoticed_brokers(report: "StatusReport") -> "list[NodeId]":
    """Returns the brokers that do not run now and are not fenced yet."""
    return [node.node_id for node in report.nodes if node.fenced is False and node.state != "running"]


def lost(directory: Path) -> CommandFailedError:
    """Returns the error of a supervisor that ended before its last answer."""
    from laststand.chaos.standing.link import SupervisorLostError

    return CommandFailedError(str(SupervisorLostError(directory)))


def administer(directory: Path, work: "Callable[[AdminClient], Coroutine[None, None, ResultT]]") -> ResultT:
    """Runs an administrator's request on a standing cluster, bypassing all proxies, and returns its result.

    Raises:
        UserError: there is no cluster, or the request is impossible there.
        CommandFailedError: a node refused or did not answer.
    """
    from laststand.chaos.standing import administration

    return working(administration.administer(directory, work))


def partitions_of(directory: Path, topic: str, partition: int | None) -> "tuple[TopicPartition, ...]":
    """Returns a topic's partitions, or the requested one.

    Raises:
        UserError: there is no such topic or partition, or no cluster.
        CommandFailedError: the controller did not answer, or knows no partition of the topic yet.
    """
    from laststand.emulator.core.types import TopicPartition

    counts = administer(directory, functools.partial(_count_partitions, topic=topic))
    if counts.get(topic) == 0:
        raise CommandFailedError(f"topic {topic} was created, and has no partition after {_CREATED_WITHIN_S:.0f} s")
    if topic not in counts:
        there = ", ".join(sorted(counts)) or "none"
        raise UserError(f"no topic {topic!r}; there are: {there}{suggestion(topic, counts)}")
    if partition is None:
        return tuple(TopicPartition(topic, index) for index in range(counts[topic]))
    if partition >= counts[topic]:
        raise UserError(f"no partition {partition} of topic {topic}, there are 0 to {counts[topic] - 1}")
    return (TopicPartition(topic, partition),)


async def _count_partitions(admin: "AdminClient", *, topic: str) -> dict[str, int]:
    """Returns the number of partitions of each topic; waits for those that a ZooKeeper cluster just created."""
    deadline = time.monotonic() + _CREATED_WITHIN_S
    while True:
        counts = {each.name: len(each.partitions) for each in await admin.describe_topics()}
        if counts.get(topic) != 0 or time.monotonic() >= deadline:
            return counts
        await asyncio.sleep(_LOOK_INTERVAL_S)


def working(work: Coroutine[None, None, ResultT]) -> ResultT:
    """Runs a coroutine of a command to its end and returns its result.

    Raises:
        UserError: the user can fix what went wrong.
        CommandFailedError: the user cannot fix the error.
    """
    from laststand.chaos.standing.link import NoClusterError
    from laststand.emulator.client.admin_error import AdminError

    try:
        return asyncio.run(work)
    except (EmulatorError, ExceptionGroup) as error:
        match _first(error):
            case UserError() | ConfigError() as error:
                raise error from None
            case NoClusterError() as error:
                raise UserError(str(error)) from None
            case AdminError() as error:
                raise _refused(error) from None
            case EmulatorError() as error:
                raise CommandFailedError(str(error)) from None
            case _:
                raise


def _refused(error: "AdminError") -> EmulatorError:
    """Returns the error of a command that a node refused, or did not answer."""
    from laststand.emulator.core.errors import ErrorCode

    match error.error:
        case ErrorCode.UNKNOWN_SERVER_ERROR:
            return CommandFailedError(str(error))
        case ErrorCode.REQUEST_TIMED_OUT:
            return CommandFailedError(f"{error}; nobody knows whether it was done", exit_code=ExitCode.UNKNOWN)
        case ErrorCode.NETWORK_EXCEPTION:
            return UserError(f"{error}; laststand status says which nodes run")
        case _:
            return UserError(str(error))


def answers_exit_code(answers: "Sequence[ErrorCode]", *, fine: "Collection[ErrorCode] | None" = None) -> ExitCode:
    """Returns the exit code of a request that was answered for each partition by itself.

    Args:
        answers: one for each partition.
        fine: the answers that mean success; by default NONE alone.
    """
    from laststand.emulator.core.errors import ErrorCode

    mistakes = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    )
    if answers and all(answer in mistakes for answer in answers):
        return ExitCode.USAGE
    wrong = [answer for answer in answers if answer not in (fine or (ErrorCode.NONE,))]
    if ErrorCode.REQUEST_TIMED_OUT in wrong:
        return ExitCode.UNKNOWN
    return ExitCode.VIOLATION if wrong else ExitCode.VALID


def _first(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error

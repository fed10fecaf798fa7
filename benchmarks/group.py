"""A join of three members on real processes: how much longer it takes than the protocol has it wait.

Brokers wait ``group.initial.rebalance.delay.ms`` for more members, and once more where some came meanwhile, as with
three that start at the same moment. A join begins with the first JoinGroup and ends when the last member has its
partitions; each repetition is a group of its own. RF 3, min ISR 2, also for ``__consumer_offsets``.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.cluster import BROKER_IDS, REPLICAS, TOPIC, BenchmarkCluster, BenchmarkError, are_isrs_full
from benchmarks.figure import Figure
from laststand.chaos.process.client_link import ClientLink
from laststand.emulator.client.config import ClientConfig, MembersConfig
from laststand.emulator.client.history import HISTORY_FILE, read_history
from laststand.emulator.cluster.layout import token_file
from laststand.emulator.core.client.settings import MemberSettings
from laststand.emulator.core.history import GroupMemberOperation, MemberStep
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.plan import actions
from laststand.emulator.rpc.run_token import RunToken

MEMBERS: Final = 3
REPETITIONS: Final = 10
DELAY_MS: Final = 500
"""``group.initial.rebalance.delay.ms``; Kafka's 3 s would only be waited for."""

_SESSION_TIMEOUT_MS: Final = 9_000
_DEADLINE_S: Final = 60.0


def measure() -> Iterator[Figure]:
    """Yields the figure.

    Raises:
        BenchmarkError: a node died, or a member was not assigned anything in time.
    """
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
        history = Path(directory) / HISTORY_FILE
        asyncio.run(_join(Path(directory), history))
        yield Figure(name="group_join_beyond_delays", unit="ms", values=tuple(_durations(history)[1:]))


async def _join(directory: Path, history: Path) -> None:
    async with BenchmarkCluster(
        directory,
        session_timeout_ms=_SESSION_TIMEOUT_MS,
        properties=(("group.initial.rebalance.delay.ms", str(DELAY_MS)),),
    ) as cluster:
        await cluster.start()
        await cluster.create_topic(OFFSETS_TOPIC, REPLICAS)
        await cluster.wait_until(are_isrs_full, what="full ISRs")
        link = ClientLink(on_counts=lambda: None)
        token = token_file(directory)
        config = ClientConfig(
            history_path=str(history),
            control_port=await link.listen(RunToken.read_or_draw(token)),
            token_file=str(token),
            brokers=BROKER_IDS,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            producers=(),
            consumers=(),
            members=MembersConfig(topics=(TOPIC,), settings=MemberSettings()),
        )
        child = await link.launch(cluster.processes.supervisor, config, directory=directory)
        try:
            link.start_work(cluster.processes.direct_addresses())
            for repetition in range(1 + REPETITIONS):
                await _join_once(link, f"group-{repetition}", history, 1 + repetition)
            await link.stop_work(timeout_ms=15_000)
            cluster.check()
        finally:
            await child.kill()
            await link.close()


async def _join_once(link: ClientLink, group: str, history: Path, repetition: int) -> None:
    """Has a group's members join and waits until all have their partitions; they leave then."""
    for number in range(MEMBERS):
        link.do_as_member(actions.Member(group=group, number=number, does=actions.MemberDoes.JOIN))
    for _ in range(round(_DEADLINE_S * 1000 / DELAY_MS)):
        if sum(line.step is MemberStep.ASSIGNED for line in _lines(history)) >= repetition * MEMBERS:
            break
        await asyncio.sleep(DELAY_MS / 1000)
    else:
        raise BenchmarkError(f"{group} has no generation of {MEMBERS} within {_DEADLINE_S} s")
    for number in range(MEMBERS):
        link.do_as_member(actions.Member(group=group, number=number, does=actions.MemberDoes.DIE))


def _lines(history: Path) -> list[GroupMemberOperation]:
    return [line for line in read_history(history) if isinstance(line, GroupMemberOperation)]


def _durations(history: Path) -> list[float]:
    durations: list[float] = []
    lines = _lines(history)
    for group in dict.fromkeys(line.group_id for line in lines):
        begun_ns = next(line.time_ns for line in lines if line.group_id == group)
        assigned = [line for line in lines if line.group_id == group and line.step is MemberStep.ASSIGNED]
        if {line.generation_id for line in assigned} != {1}:
            raise BenchmarkError(f"{group} did not join at once")
        durations.append((assigned[-1].time_ns - begun_ns) / 1e6 - 2 * DELAY_MS)
    return durations

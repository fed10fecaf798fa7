"""Measures how long clients waited; the verdict does not depend on that.

Sends are timed by the clock of the clients, committed states by that of the controller, faults by that of the harness.
On one machine, and in virtual time, these are one clock; on several machines a time from a fault to an acknowledgement
is only as exact as their clocks. Partitions are measured up to the plan's last step, the settling of the cluster or the
last outcome of a send, whichever is latest: no client waits while the processes stop.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.history import OperationType
from laststand.emulator.verification.facts.committed_states import PartitionState, committed_states
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.tables.client_history import SentBatch
from laststand.emulator.verification.tables.columns import NONE, Table
from laststand.emulator.verification.tables.integers import Ints

_ACKED: Final = (-1, 1)
"""Kinds of acks for which a producer waits."""

_WAITING: Final = ("{until", "{wait", "wait ")
"""Beginnings of the texts of steps that only wait."""

_NEVER: Final = np.iinfo(np.int64).max
_S: Final = 1e9


class FaultToAck(msgspec.Struct, frozen=True, kw_only=True):
    """The time from a fault to the first acknowledgement of a workload.

    Attributes:
        fault: name of the fault.
        target: a node or a link, in words.
        seconds: from the moment at which the fault was seen to take effect to the first acknowledgement of a send that
            was begun later; ``None`` if none of these sends was acknowledged.
    """

    fault: str
    target: str
    seconds: float | None


class WorkloadAvailability(msgspec.Struct, frozen=True, kw_only=True):
    """The waiting times of producers with one kind of acks in one partition.

    Attributes:
        acks: -1 (all) or 1; with 0 producers do not wait.
        longest_without_ack_s: the longest time in seconds from an acknowledgement, or from the first send after it if
            none was waiting then, to the next acknowledgement; or to the last outcome if there is no other.
        p99_ack_s: the time in seconds from the first attempt within which 99 of 100 acknowledged batches were
            acknowledged; ``None`` if there are none.
        slowest_after_fault: the fault after which the first acknowledgement took longest; ``None`` if nothing was sent
            after a fault.
        longest_begun_ns: when the longest time without an acknowledgement began, by the clock of the clients.
        longest_after_step: the last action of the plan that had begun by then (``step 4 {kill: {node: 1}}``);
            ``None`` if there was none.
    """

    acks: int
    longest_without_ack_s: float
    p99_ack_s: float | None
    slowest_after_fault: FaultToAck | None
    longest_begun_ns: int | None = None
    longest_after_step: str | None = None


class PartitionAvailability(msgspec.Struct, frozen=True, kw_only=True):
    """The times for which one partition made its clients wait.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        leaderless_s: seconds without a leader; ``None`` if no committed state is known.
        below_min_isr_s: seconds with a leader, and with fewer replicas in the ISR than acks=all needs; ``None`` where
            no committed state is known.
        workloads: by acks.
    """

    topic: str
    partition: int
    leaderless_s: float | None
    below_min_isr_s: float | None
    workloads: tuple[WorkloadAvailability, ...]


def partition_availability(facts: PartitionFacts) -> PartitionAvailability:
    """Measures one partition."""
    sent = facts.sent.only(facts.sent["begun_ns"] != NONE)
    last = [*facts.cluster.events.of(events.StepReached), *facts.cluster.events.of(events.ClusterSettled)]
    end_ns = max(int(sent["ended_ns"].max(initial=0)), *(each.time_ns for each in last), 0)
    spent = dict.fromkeys(PartitionState, 0)
    for each in committed_states(facts, end_ns=end_ns):
        spent[each.state] += max(min(each.end_ns, end_ns) - each.begin_ns, 0)
    is_known = not facts.cluster.is_seen_by_clients_alone
    return PartitionAvailability(
        topic=facts.topic,
        partition=facts.partition,
        leaderless_s=spent[PartitionState.LEADERLESS] / _S if is_known else None,
        below_min_isr_s=spent[PartitionState.BELOW_MIN_ISR] / _S if is_known else None,
        workloads=tuple(_workloads(facts, sent)),
    )


def _workloads(facts: PartitionFacts, sent: Table[SentBatch]) -> Iterator[WorkloadAvailability]:
    for acks in _ACKED:
        own = sent.only(sent.has("acks", acks))
        if not len(own):
            continue
        begun, ended, is_acked = own["begun_ns"], own["ended_ns"], own.has("type", OperationType.OK)
        waited = (ended - begun)[is_acked]
        longest_begun_ns, longest_ns = _longest_wait(begun, ended, ended[is_acked])
        yield WorkloadAvailability(
            acks=acks,
            longest_without_ack_s=longest_ns / _S,
            longest_begun_ns=longest_begun_ns,
            longest_after_step=_last_action(facts, longest_begun_ns),
            p99_ack_s=float(np.quantile(waited, 0.99, method="inverted_cdf")) / _S if len(waited) else None,
            slowest_after_fault=_slowest_after_fault(facts, begun, np.where(is_acked, ended, _NEVER)),
        )


def _last_action(facts: PartitionFacts, time_ns: int) -> str | None:
    """Returns the last step that had begun by a time, leaving out steps that only wait."""
    last, begun_ns = None, 0
    for reached in facts.cluster.events.of(events.StepReached):
        if begun_ns > time_ns:
            break
        if not reached.event.text.startswith(_WAITING):
            last = f"step {reached.event.step} {reached.event.text}"
        begun_ns = reached.time_ns
    return last


def _longest_wait(begun: Ints, ended: Ints, acked: Ints) -> tuple[int, int]:
    """Returns begin and length of the longest time from a send or an acknowledgement to the next acknowledgement."""
    begun, ended, acked = np.sort(begun), np.sort(ended), np.sort(acked)
    # Each wait begins at the earliest at the acknowledgement before it; the first one has none before it.
    since = np.concatenate([[NONE], acked])
    until = np.append(acked, ended[-1])
    begun_by_then = np.searchsorted(begun, since, "right")
    is_waiting = begun_by_then > np.searchsorted(ended, since, "right")
    next_begun = np.append(begun, _NEVER)[begun_by_then]
    starts = np.where(is_waiting, since, np.minimum(next_begun, until))
    waits = np.maximum(until - starts, 0)
    longest = int(waits.argmax())
    return int(starts[longest]), int(waits[longest])


def _slowest_after_fault(facts: PartitionFacts, begun: Ints, acked: Ints) -> FaultToAck | None:
    order = np.argsort(begun, kind="stable")
    first_acks = np.minimum.accumulate(acked[order][::-1])[::-1].tolist()
    found = []
    for injected in facts.cluster.events.of(events.FaultInjected):
        fault = injected.event
        at_ns = injected.time_ns if fault.proved_ns is None else fault.proved_ns
        place = int(np.searchsorted(begun[order], at_ns))
        if fault.effect is not None and place < len(first_acks):
            found.append((first_acks[place] - at_ns if first_acks[place] != _NEVER else _NEVER, fault))
    if not found:
        return None
    waited_ns, fault = max(found, key=lambda each: each[0])
    seconds = None if waited_ns == _NEVER else waited_ns / _S
    return FaultToAck(fault=fault.fault, target=fault.target, seconds=seconds)

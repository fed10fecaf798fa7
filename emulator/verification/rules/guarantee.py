"""Decides whether a lost record was inside the guarantee (the protocol is wrong) or outside it (too much broke).

The guarantee holds for a record if, from its acknowledgement up to and including the committed election of the first
leader that lacks it,

- at no moment more replicas of the partition were *outstanding* than min(min ISR, replication factor) - 1 allows: the
  least min ISR that was configured since the acknowledgement, and the replication factor at the acknowledgement or at
  that moment, whichever is less, and
- no unclean election was *accepted*, that of a last-known leader included: by a configuration that prefers an unclean
  leader to none, or by an administrator who asked for one.

A replica is outstanding from the end of an incarnation without clean shutdown, whether bytes were lost or not, until a
committed ISR contains it after its new registration. An incarnation that stopped before it learned of its registration
leaves no proof of a clean shutdown either (KIP-966: the previous broker epoch is the proof; S44). A broker that an
administrator has unregistered cannot prove it either, from then on. A newly assigned replica has no records yet: until
a committed ISR contains it, it counts neither as outstanding nor towards the replication factor. Records that were
acknowledged before the partition was created (by a leader of an earlier topic of that name: S41) count from its
creation on.

All times are metadata offsets: that of an acknowledgement is the end of the metadata that its leader had applied (never
later than the true one); that of the end of a process comes from the harness.

But for S44, an excuse begins only with a configuration, a request or a fault. Reports of the judged cluster can only
end an excuse or deny one; the README lists each input.
"""

from collections.abc import Iterator, Sequence, Set
from enum import Enum
from itertools import accumulate
from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.types import ChangeReason, FenceReason, Witness
from laststand.emulator.verification.facts.configuration import Configuration
from laststand.emulator.verification.tables.timeline import Timeline

_UNCLEAN: Final = (events.Election.UNCLEAN, events.Election.LAST_KNOWN_LEADER)


class Guarantee(Enum):
    """The relation of a loss to the guarantee: whether the guarantee covered it."""

    BROKEN = "broken"
    """Lost although the guarantee held: the protocol is wrong."""

    NOT_KNOWN = "not known"
    """Lost, and nothing records which replicas were outstanding."""

    EXCEEDED = "exceeded"
    """Lost after more went wrong than the guarantee covers."""


def worst_of(kinds: Set[Guarantee]) -> Guarantee | None:
    """Returns the worst of several kinds of violations; ``None`` if there are none."""
    return next((kind for kind in Guarantee if kind in kinds), None)


class GuaranteeJudgement(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of a loss, and the reason in plain words."""

    guarantee: Guarantee
    reason: str


class _Absence(msgspec.Struct, frozen=True, kw_only=True):
    """The time for which a replica was outstanding, from ``since`` to ``until``, both inclusive.

    The record at ``until`` ends the absence: a leader that this record elects was outstanding until then. ``None``
    means that the replica never came back.
    """

    node: int
    since: int
    until: int | None


class _Outage(msgspec.Struct, frozen=True, kw_only=True):
    """The brokers that were outstanding at the same time, and the number that the configuration allowed."""

    outstanding: frozenset[int]
    allowed: int

    @property
    def excess(self) -> tuple[int, int]:
        """The number of outstanding brokers above the allowed one, and in all; outages are compared by it."""
        return len(self.outstanding) - self.allowed, len(self.outstanding)


def judge_guarantee(
    timeline: Timeline,
    configuration: Configuration,
    *,
    topic_id: str,
    partition: int,
    acked_at: int,
    lacking_epoch: int | None,
    unelected_at: int | None = None,
) -> GuaranteeJudgement:
    """Judges the loss of records of one partition.

    Args:
        timeline: of the run.
        configuration: of the run.
        topic_id: of the partition's topic.
        partition: number of the partition.
        acked_at: metadata offset that the acknowledging leader had applied (exclusive) when it answered.
        lacking_epoch: leader epoch of the first leader without the records: changes up to its election count. ``None``
            if there was no such leader: then changes up to the end of the run count.
        unelected_at: if that leader was restarted after its election, the end of the metadata (exclusive) by which it
            became leader again: changes up to there count.
    """
    harness = next((each for each in timeline.of(events.NodeStarted) if each.witness is Witness.CLIENTS), None)
    if harness is not None:
        return _seen_by_clients_alone(timeline, has_plan=harness.ending is not None)
    changes = sorted(
        (c for c in timeline.of(events.PartitionChanged) if c.topic_id == topic_id and c.partition == partition),
        key=lambda c: c.metadata_offset,
    )
    if not changes:
        return GuaranteeJudgement(guarantee=Guarantee.BROKEN, reason="the controller never changed the partition")
    if changes[0].reason is ChangeReason.CREATED:
        acked_at = max(acked_at, changes[0].metadata_offset + 1)
    until = next((c.metadata_offset for c in changes if c.leader_epoch == lacking_epoch and c.leader is not None), None)
    last = until if until is not None else max((c.metadata_offset for c in changes), default=acked_at)
    last = max(last, unelected_at or 0)
    elections = [c for c in changes if c.election in _UNCLEAN]
    accepted = _accepted(timeline, configuration, elections)
    within = [election for election in elections if acked_at <= election.metadata_offset <= last]
    for election in within:
        if election in accepted:
            return GuaranteeJudgement(
                guarantee=Guarantee.EXCEEDED,
                reason=f"broker {election.leader} was elected {_how(election)} at metadata offset "
                f"{election.metadata_offset}, which {accepted[election]}",
            )
    worst = _worst_outage(timeline, configuration, changes, acked_at=acked_at, last=last)
    return _judgement(worst, unaccepted=within)


def _seen_by_clients_alone(timeline: Timeline, *, has_plan: bool) -> GuaranteeJudgement:
    """Judges a loss when only the plan's faults are known, and not which replicas they made lose records."""
    asked = any(step.unclean_elections for step in timeline.of(events.StepReached))
    broken = [fault.fault for fault in timeline.of(events.FaultInjected)]
    is_whole = all(end.problem is None for end in timeline.of(events.RunEnded))
    if has_plan and is_whole and not broken and not asked:
        return GuaranteeJudgement(
            guarantee=Guarantee.BROKEN, reason="no step broke anything, or asked for an unclean election"
        )
    what = "a step did not come to its end"
    if broken:
        what = f"steps broke something ({', '.join(dict.fromkeys(broken))})"
    elif asked:
        what = "an unclean election was asked for"
    why = what if has_plan else "no plan says what was broken"
    return GuaranteeJudgement(
        guarantee=Guarantee.NOT_KNOWN, reason=f"{why}, and nobody tells which replicas were outstanding"
    )


def _judgement(worst: _Outage, *, unaccepted: Sequence[events.PartitionChanged]) -> GuaranteeJudgement:
    brokers, allowed = sorted(worst.outstanding), worst.allowed
    names = "no replica" if not brokers else "brokers " + ", ".join(map(str, brokers))
    were = "were" if brokers else "was"
    if len(brokers) == 1:
        names, were = f"broker {brokers[0]}", "was"
    if worst.excess[0] > 0:
        return GuaranteeJudgement(
            guarantee=Guarantee.EXCEEDED,
            reason=f"{names} {were} outstanding at once, each since an end without clean shutdown or since it was "
            f"unregistered; min ISR allows {allowed}",
        )
    elected = "no election was unclean"
    if unaccepted:
        first = unaccepted[0]
        elected = f"nobody accepted that broker {first.leader} was elected {_how(first)}"
    who = f"only {names}" if brokers else names
    return GuaranteeJudgement(
        guarantee=Guarantee.BROKEN, reason=f"{who} {were} outstanding, min ISR allows {allowed}, and {elected}"
    )


def _how(election: events.PartitionChanged) -> str:
    return "as last-known leader" if election.election is events.Election.LAST_KNOWN_LEADER else "uncleanly"


# --- Who was outstanding ------------------------------------------------------------------------------------------


def _worst_outage(
    timeline: Timeline,
    configuration: Configuration,
    changes: Sequence[events.PartitionChanged],
    *,
    acked_at: int,
    last: int,
) -> _Outage:
    absences = list(_absences(timeline, changes))
    moments = {
        acked_at,
        *(absence.since for absence in absences),
        *configuration.changed_at,
        *(change.metadata_offset + 1 for change in changes),
    }

    def min_isr(at: int) -> int:
        return configuration.min_isr(changes[0].topic, _replicas(changes, at), at=at)

    def outage(at: int, least_min_isr: int) -> _Outage:
        holders = _holders(changes, at)
        outstanding = frozenset(
            absence.node
            for absence in absences
            if absence.node in holders and absence.since <= at and (absence.until is None or at <= absence.until)
        )
        replication_factor = min(len(holders), len(_holders(changes, acked_at)))
        return _Outage(outstanding=outstanding, allowed=min(least_min_isr, replication_factor) - 1)

    within = [moment for moment in sorted(moments) if acked_at <= moment <= max(last, acked_at)]
    least = accumulate(map(min_isr, within), min)
    return max(map(outage, within, least), key=lambda each: each.excess)


def _replicas(changes: Sequence[events.PartitionChanged], at: int) -> tuple[int, ...]:
    """Returns the replicas by the metadata below an offset, with those that are being added or removed."""
    before = [change for change in changes if change.metadata_offset < at] or changes[:1]
    return tuple(before[-1].replicas)


def _holders(changes: Sequence[events.PartitionChanged], at: int) -> frozenset[int]:
    """Returns the replicas that count: all but newly assigned ones that no committed ISR has contained yet."""
    replicas, added = set(changes[0].replicas), set[int]()
    for change in changes:
        if change.metadata_offset >= at:
            break
        added |= set(change.replicas) - replicas
        added &= set(change.replicas) - set(change.isr)
        replicas = set(change.replicas)
    return frozenset(replicas - added)


def _absences(timeline: Timeline, changes: Sequence[events.PartitionChanged]) -> Iterator[_Absence]:
    registrations = [
        (r.broker_id, timeline.incarnation_of(r.incarnation_id), r.metadata_offset)
        for r in timeline.of(events.BrokerRegistered)
    ]
    heard = {
        (collected.node, collected.incarnation)
        for collected in timeline.events
        if isinstance(collected.event, events.BrokerStateChanged) and collected.event.broker_epoch is not None
    }
    known = 0
    for end in timeline.of(
        events.IncarnationEnded
    ):  # The harness's own order: an unknown offset is not below the last one.
        known = max(known, end.metadata_offset or 0)
        process = (end.ended_node, end.ended_incarnation)
        is_registered = any((broker, incarnation) == process for broker, incarnation, _ in registrations)
        if end.end is events.IncarnationEnd.STOPPED and (process in heard or not is_registered):
            continue
        registered = min(
            (
                offset
                for broker, incarnation, offset in registrations
                if broker == end.ended_node and incarnation is not None and incarnation > end.ended_incarnation
            ),
            default=None,
        )
        yield _Absence(node=end.ended_node, since=known, until=_back(changes, end.ended_node, registered))
    for forgotten in timeline.of(events.BrokerFenced):
        if forgotten.reason is FenceReason.UNREGISTERED:
            broker_id, since = forgotten.broker_id, forgotten.metadata_offset
            again = min((at for broker, _, at in registrations if broker == broker_id and at > since), default=None)
            yield _Absence(node=broker_id, since=since, until=_back(changes, broker_id, again))


def _back(changes: Sequence[events.PartitionChanged], broker_id: int, registered: int | None) -> int | None:
    """Returns the metadata offset of the first ISR with a broker after its registration; ``None`` if there is none."""
    if registered is None:
        return None
    isrs = ((change.metadata_offset, change.isr) for change in changes if change.metadata_offset > registered)
    return min((offset for offset, isr in isrs if broker_id in isr), default=None)


# --- Which unclean elections were accepted ------------------------------------------------------------------------


def _accepted(
    timeline: Timeline, configuration: Configuration, elections: Sequence[events.PartitionChanged]
) -> dict[events.PartitionChanged, str]:
    """Returns the accepted unclean elections, each with the end of a sentence that says why it was accepted."""
    accepted: dict[events.PartitionChanged, str] = {}
    if not elections:
        return accepted
    requests = UncleanRequests(timeline, f"{elections[0].topic}-{elections[0].partition}")
    for election in elections:
        if configuration.accepts_unclean_leaders(election.topic, at=election.metadata_offset):
            accepted[election] = "the topic prefers to none"
        elif requests.account_for(election.metadata_offset):
            accepted[election] = "an administrator asked for"
    return accepted


class UncleanRequests:
    """Administrators' requests for unclean elections of a partition; each explains at most one election.

    Args:
        timeline: of the run, or of its harness alone.
        partition: in the form of steps (``orders-0``).
    """

    def __init__(self, timeline: Timeline, partition: str) -> None:
        self._made_at = list(_requests(timeline, partition))

    def account_for(self, metadata_offset: int) -> bool:
        """Uses up a request that was made before an election; returns whether there was one left."""
        made_at = next((each for each in self._made_at if each <= metadata_offset), None)
        if made_at is None:
            return False
        self._made_at.remove(made_at)
        return True


def _requests(timeline: Timeline, partition: str) -> Iterator[int]:
    """Yields the earliest metadata offset of each administrator's request for an unclean election of a partition.

    A step is recorded when it is done, so it may have begun at the metadata offset that the harness knew at the end of
    the step before. An order of a Kafka client is recorded before the broker relays it.
    """
    known = before = 0
    for collected in timeline.events:
        match collected.event:
            case events.StepReached(unclean_elections=asked):
                if partition in asked:
                    yield before
                before = known
            case events.OrderRelayed(unclean_elections=asked, metadata_offset=applied):
                if partition in asked:
                    yield applied
            case events.IncarnationEnded() | events.FaultInjected() | events.FaultHealed():
                known = max(known, collected.event.metadata_offset or 0)
            case _:
                pass

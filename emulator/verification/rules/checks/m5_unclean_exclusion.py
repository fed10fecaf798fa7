"""M5 UncleanExclusion: a broker that may have lost data is no candidate until its leader vouches for it.

A registration is unclean if it names another previous broker epoch than the one stored. From then on the broker must be
in no ISR or ELR and lead nothing, until an AlterPartition that names its new broker epoch is committed, it is elected
uncleanly, a cancelled reassignment puts it into the ISR (which is a matter of M11), or it registers again. Partitions
created later or deleted before are not concerned, and nothing is required while the feature of ELR is off. The change
that removes the broker belongs to the same batch of records, so the state before that batch does not count.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.types import ChangeReason
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.partition_evidence import UNCLEAN
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import broker, listed

_NEVER: Final = 2**62
_VOUCHED_BY: Final = ("NONE", "NEW_LEADER_ELECTED")
"""NEW_LEADER_ELECTED is the answer if the change was made, and ended the leadership of its sender."""

_Vouched = dict[tuple[str, int, int], set[int | None]]
"""The broker epochs that AlterPartitions named, by topic id, partition epoch after it and broker."""


class _Exclusion(msgspec.Struct, frozen=True, kw_only=True):
    """The exclusion of a broker that registered uncleanly; it ends for all partitions at metadata offset ``until``."""

    broker_id: int
    broker_epoch: int
    since: int
    until: int


@partition_check(
    "M5",
    "UncleanExclusion",
    source="KIP-966, ELR invariants and Detection of an unclean shutdown",
    needs={Evidence.EVENTS},
    premises={Premise.OWN_WORD, Premise.UNCLEAN_REGISTRATION},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    vouched = _vouched(facts)
    for topic_id in facts.states:
        changes = [change.new for change in facts.changes if change.new.topic_id == topic_id]
        gone_at = facts.cluster.deleted_topics.get(topic_id, _NEVER)
        for excluded in _exclusions(facts.cluster):
            if changes[0].metadata_offset >= excluded.since:
                continue
            readmitted = next((c.metadata_offset for c in changes if _readmits(c, excluded, vouched)), _NEVER)
            for state, after in zip_longest(changes, changes[1:]):
                ended = gone_at if after is None else after.metadata_offset
                if not excluded.since < ended or state.metadata_offset >= min(excluded.until, readmitted):
                    continue
                if state.metadata_offset < excluded.since and _removes(after, excluded):
                    continue
                if excluded.broker_id in (state.leader, *state.isr, *state.elr):
                    yield _finding(facts, state, excluded)


def _exclusions(cluster: ClusterFacts) -> Iterator[_Exclusion]:
    downgrades = [change.metadata_offset for change in cluster.elr_levels if change.feature_level == 0]
    registrations = [registration.event for registration in cluster.registrations]
    for number, event in enumerate(registrations):
        since = event.metadata_offset
        is_clean = event.stored_broker_epoch in (None, event.previous_broker_epoch)
        if is_clean or not cluster.has_elr(since):
            continue
        again = [r.metadata_offset for r in registrations[number + 1 :] if r.broker_id == event.broker_id]
        ends = [*again, *(offset for offset in downgrades if offset > since)]
        yield _Exclusion(
            broker_id=event.broker_id,
            broker_epoch=event.broker_epoch,
            since=since,
            until=min(ends, default=_NEVER),
        )


def _vouched(facts: PartitionFacts) -> _Vouched:
    vouched: _Vouched = {}
    for decided in facts.events.of(events.AlterPartitionDecided):
        event = decided.event
        if event.error in _VOUCHED_BY:
            for member, broker_epoch in zip_longest(event.proposed_isr, event.broker_epochs):
                vouched.setdefault((event.topic_id, event.partition_epoch + 1, member), set()).add(broker_epoch)
    return vouched


def _readmits(change: events.PartitionChanged, excluded: _Exclusion, vouched: _Vouched) -> bool:
    if change.metadata_offset <= excluded.since:
        return False
    epochs = vouched.get((change.topic_id, change.partition_epoch, excluded.broker_id), set())
    is_vouched_for = change.reason is ChangeReason.ALTER_PARTITION and bool(epochs & {None, excluded.broker_epoch})
    is_elected = change.election in UNCLEAN and change.leader == excluded.broker_id
    is_put_back = change.reason is ChangeReason.REASSIGNMENT and excluded.broker_id in change.isr
    return is_vouched_for or is_elected or is_put_back


def _removes(change: events.PartitionChanged | None, excluded: _Exclusion) -> bool:
    return (
        change is not None
        and change.reason is ChangeReason.BROKER_REGISTERED
        and change.broker_id == excluded.broker_id
    )


def _finding(facts: PartitionFacts, state: events.PartitionChanged, excluded: _Exclusion) -> Finding:
    return Finding(
        state.metadata_offset,
        f"{facts} at metadata offset {state.metadata_offset}: leader {broker(state.leader)}, ISR {listed(state.isr)}, "
        f"ELR {listed(state.elr)}, though broker {excluded.broker_id} registered uncleanly at metadata offset "
        f"{excluded.since} and was not readmitted since",
    )

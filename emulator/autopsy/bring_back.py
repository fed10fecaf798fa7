"""Finds the broker to bring back first, by the number of leaderless partitions that would get a leader. Pure.

A broker is worth most for a partition if it may lead it cleanly, by the proofs that it still has after its restart, and
if no other log that was read holds a record that it lacks. Brokers are ordered greedily: the next broker is the one
that most of the still leaderless partitions gain from.
"""

from collections.abc import Sequence
from typing import NamedTuple

from laststand.emulator.autopsy.eligibility import ElectionRule
from laststand.emulator.autopsy.findings import BrokerReturn, CandidateReport, PartitionAutopsy
from laststand.emulator.core.types import BrokerId

_CLEAN = (ElectionRule.ISR, ElectionRule.ELR)
_Partition = tuple[str, int]


class _Gain(NamedTuple):
    replicas: frozenset[_Partition]
    eligible: frozenset[_Partition]
    complete: frozenset[_Partition]

    def worth(self, left: frozenset[_Partition], others: frozenset[_Partition]) -> tuple[int, int]:
        """Returns the broker's gain: partitions for which it is both; without these, those for which it is complete."""
        return len(self.eligible & self.complete & left), len(self.complete & others)


def brokers_to_return(partitions: Sequence[PartitionAutopsy]) -> tuple[BrokerReturn, ...]:
    """Returns the brokers that have a replica of a partition without a leader, those first that should return first."""
    leaderless = [each for each in partitions if each.is_leaderless]
    gains = {broker_id: _gain(broker_id, leaderless) for broker_id in sorted(_brokers(leaderless))}
    left = frozenset((each.topic, each.partition) for each in leaderless)
    led = frozenset[_Partition]().union(*(gain.eligible & gain.complete for gain in gains.values()))
    others = left - led
    found: list[BrokerReturn] = []
    while gains:
        broker_id = max(gains, key=lambda each: (gains[each].worth(left, others), -each))
        gain = gains.pop(broker_id)
        both = gain.eligible & gain.complete
        found.append(
            BrokerReturn(
                broker_id=broker_id,
                replicas=len(gain.replicas),
                eligible=len(gain.eligible),
                complete=len(gain.complete),
                eligible_and_complete=len(both),
                added=len(both & left),
                complete_otherwise=len(gain.complete & others),
            )
        )
        left -= both
    return tuple(found)


def _brokers(partitions: Sequence[PartitionAutopsy]) -> set[BrokerId]:
    return {candidate.broker_id for partition in partitions for candidate in partition.candidates}


def _gain(broker_id: BrokerId, partitions: Sequence[PartitionAutopsy]) -> _Gain:
    own = {
        (partition.topic, partition.partition): found
        for partition in partitions
        if (found := [each for each in partition.candidates if each.broker_id == broker_id])
    }
    return _Gain(
        replicas=frozenset(own),
        eligible=frozenset(name for name, logs in own.items() if all(map(_is_eligible, logs))),
        # Of several logs it is not known which would lead.
        complete=frozenset(name for name, logs in own.items() if all(map(_is_complete, logs))),
    )


def _is_eligible(candidate: CandidateReport) -> bool:
    return candidate.eligibility.rule in _CLEAN and candidate.eligibility.survives_restart is not False


def _is_complete(candidate: CandidateReport) -> bool:
    return not candidate.losses

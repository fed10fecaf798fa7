"""Vectors of the kind ``unclean_choice``: whom the comparison of several replicas' logs elects (KIP-966).

The schema says no more of it than that, so the adapter reads what the neighbouring kinds use: replicas by letter, each
as its answer to GetReplicaLogInfo (the words of ``kip966_recovery_select``), or as the ``log`` that it would answer
from (those of ``replica_log_info``). What is left out of an answer is as registered, and as current.
"""

from collections.abc import Mapping
from typing import Final

from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.controller.recovery import ReplicaReport, choose_leader
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import BrokerEpoch, LeaderEpoch, Offset, PartitionEpoch
from tests.conformance.broker_world import LETTERS, TOPIC_ID, broker_id, leader_epoch, letters, make_log
from tests.conformance.harness import Fields, Handler, Vector, outcome_mismatches

_LISTS: Final = ("replicas", "responses", "answers")
_NAMES: Final = ("replica", "broker", "id")
_NOBODY: Final = (None, -1, "none")


def run_unclean_choice(vector: Vector) -> list[str]:
    """Several replicas' logs, and the one that is to lead."""
    before = {**vector.before, **{key: value for step in vector.steps for key, value in step.items() if key != "op"}}
    current = LeaderEpoch(before.get("leader_epoch", before.get("current_leader_epoch", 0)))
    answers = [_report(name, fields, current) for name, fields in _answers(before)]
    state = PartitionState(
        topic_id=TOPIC_ID,
        replicas=tuple(report.broker_id for report, _ in answers),
        isr=(),
        leader=None,
        leader_epoch=current,
        partition_epoch=PartitionEpoch(0),
    )
    registered = {report.broker_id: broker_epoch for report, broker_epoch in answers}
    choice = choose_leader(state, tuple(report for report, _ in answers), broker_epochs=registered)
    expected = vector.final.get("leader", vector.final.get("chosen"))
    leader = LETTERS[choice.leader] if choice.leader is not None else expected if expected in _NOBODY else None
    actual = {"leader": leader, "chosen": leader, "discarded": letters(choice.discarded)}
    return outcome_mismatches(vector, actual, sets={"discarded"})


def _answers(before: Fields) -> list[tuple[str, Fields]]:
    [listed] = [before[key] for key in _LISTS if key in before]
    if isinstance(listed, Mapping):
        return [(str(name), fields) for name, fields in listed.items()]
    return [(str(next(fields[key] for key in _NAMES if key in fields)), fields) for fields in listed]


def _report(name: str, fields: Fields, current: LeaderEpoch) -> tuple[ReplicaReport, BrokerEpoch]:
    """Returns an answer, and the broker epoch that is registered for who gave it."""
    told = BrokerEpoch(fields.get("broker_epoch", 0))
    log = _described_log(fields)
    if log is not None:
        written, end = log.last_written_leader_epoch, log.log_end_offset
    else:
        written = leader_epoch(_first(fields, "last_written_leader_epoch", "last_epoch"))
        end = Offset(fields["log_end_offset"] if "log_end_offset" in fields else fields["leo"])
    report = ReplicaReport(
        broker_id=broker_id(name),
        broker_epoch=told,
        last_written_leader_epoch=written,
        current_leader_epoch=LeaderEpoch(fields.get("current_leader_epoch", current)),
        log_end_offset=end,
    )
    return report, BrokerEpoch(fields.get("registered_broker_epoch", fields.get("registered_epoch", told)))


def _described_log(fields: Fields) -> ReplicaLog | None:
    """Returns the log that an answer would be made from, if that is how a vector puts it."""
    if "log" in fields:
        return make_log({"epochs": [], **fields["log"]})
    if "cache_epochs" in fields:
        return make_log({"start": fields.get("start"), "leo": fields["leo"], "epochs": fields["cache_epochs"]})
    return None


def _first(fields: Fields, *names: str) -> int:
    return int(next(fields[name] for name in names if name in fields))


KINDS: Final[Mapping[str, Handler]] = {"unclean_choice": run_unclean_choice}

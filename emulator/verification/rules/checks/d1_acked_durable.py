"""D1 AckedDurable: a record acknowledged with acks=all stays in the log at its acknowledged offset."""

from collections.abc import Iterator

from laststand.emulator.core.history import ForeignProcess
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.partition import ACKS_ALL, PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import span


@partition_check(
    "D1",
    "AckedDurable",
    source="Kafka documentation, Replication: a committed message is not lost; Jepsen's Kafka workload, lost-write",
    premises={Premise.ACKED_ALL, Premise.FINAL_LOG},
    is_of_clients=True,
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    acks_1 = Exemption.ACKS_1 if PROMISES["D1"].leaves_out(Exemption.ACKS_1) else None
    for lost in facts.missing:
        batch, lacking = lost.batch, lost.lacking
        epoch = "?" if batch.leader_epoch is None else batch.leader_epoch
        node = "?" if batch.node is None else batch.node
        elected = "" if lacking is None else f"; {lacking}"
        yield Finding(
            batch.base_offset,
            f"{facts} {span(batch.base_offset, batch.last_offset)} (epoch {epoch}), acknowledged by broker {node}"
            f"{_client(batch.process)}: {lost.loss_class.value}{elected}",
            exempted_by=lost.exempted_by if batch.acks == ACKS_ALL else acks_1,
        )
    for unplaced in facts.unplaced.lost:
        yield Finding(
            unplaced.completed,
            f"{facts}: what {unplaced.process} sent as {unplaced.operation_id} was acknowledged without an offset, and "
            "none of the last reads has it, though the last of them began later",
            exempted_by=None if unplaced.acks == ACKS_ALL else acks_1,
        )


def _client(process: str) -> str:
    """Returns the words that name the Kafka client of a send; empty for a client of this project."""
    foreign = ForeignProcess.parse(process)
    return "" if foreign is None else f" to client {foreign.client_id} of Kafka"

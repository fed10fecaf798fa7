"""R1 OneTransition: a coordinator has one transition of a transactional id under way at most."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.coordinators import terms
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check


@partition_check(
    "R1",
    "OneTransition",
    source="KIP-98, Transaction Coordinator; Kafka's TransactionMetadata.pendingState",
    needs={Evidence.EVENTS},
    premises={Premise.TRANSITION},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for term in terms(facts):
        under_way: events.TransitionBegun | None = None
        for step in term.steps:
            match step.event:
                case events.TransitionBegun() as begun:
                    if under_way is not None:
                        yield Finding(
                            begun.offset,
                            f"{facts} offset {begun.offset}: {term} began to go to {begun.new} while it still went to "
                            f"{under_way.new}, by offset {under_way.offset}",
                        )
                    under_way = begun
                case events.TransitionEnded():
                    under_way = None
                case events.MarkersSent():
                    pass

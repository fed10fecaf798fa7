"""R10 Transitions: a transactional id goes from one state to another as Kafka's table of transitions allows."""

from collections.abc import Iterator
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.verification.facts.coordinators import terms
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check

_RESTING: Final = ("Empty", "CompleteCommit", "CompleteAbort")
_BEFORE: Final = {
    "Empty": _RESTING,
    "Ongoing": ("Ongoing", *_RESTING),
    "PrepareCommit": ("Ongoing",),
    "PrepareAbort": ("Ongoing", *_RESTING),
    "CompleteCommit": ("PrepareCommit",),
    "CompleteAbort": ("PrepareAbort",),
    "Dead": _RESTING,
}
"""From which states one is reached (Kafka's ``TransactionState.validPreviousStates``), of those that are written.

An id that rests may be aborted by a client whose epoch rises with each transaction (KIP-890).
"""
_NO_ERROR: Final = "NONE"


@partition_check(
    "R10",
    "Transitions",
    source="KIP-98, Transaction Coordinator; Kafka's TransactionState",
    needs={Evidence.EVENTS},
    premises={Premise.TRANSITION},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for term in terms(facts):
        state: str | None = None
        begun: events.TransitionBegun | None = None
        for step in term.steps:
            match step.event:
                case events.TransitionBegun() as event:
                    problem = None
                    if event.old not in _BEFORE.get(event.new, ()):
                        problem = f"{event.old}, which it does not follow"
                    elif state is not None and event.old != state:
                        problem = f"{event.old}, and was {state} by then"
                    if problem is not None:
                        yield Finding(
                            event.offset, f"{facts} offset {event.offset}: {term} goes to {event.new} from {problem}"
                        )
                    begun = event
                case events.TransitionEnded(error=error) if error == _NO_ERROR and begun is not None:
                    state = None if begun.new == "Dead" else begun.new
                case _:
                    pass

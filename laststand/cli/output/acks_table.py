"""The table of KIP-966's 'Ack=0/1 comparison': the measured results of runs beside the KIP's own cells."""

from collections.abc import Callable, Sequence
from typing import Final

from rich.table import Table

from laststand.emulator.verification.verdict.acks_comparison import AcksComparison, AcksMeasure, Return

_LEVELS: Final = {0: "acks=0", 1: "acks=1", -1: "acks=all"}
_ELECTIONS: Final = {
    "isr": "as the last member of the ISR",
    "elr": "from the ELR",
    "last_known_leader": "as the last known leader",
    "unclean": "uncleanly",
}

_PRODUCE: Final = ("The same.", "The same.")
_CONSUMER: Final = (
    "Clients can consume incoming messages if the ISR size is below min ISR.",
    "Clients can't consume new messages if the ISR size is below min ISR.",
)
_REPLICATION: Final = (
    "HWM will move forward even if the ISR size is below min ISR.",
    "HWM can not move forward if the ISR size is below min ISR.",
)
_RECOVER: Final = ("(not in the text)", "(not in the text)")
"""The KIP names this row; the text that there is of it has nothing in the cells."""


def acks_table(measured: Sequence[tuple[str, AcksComparison]]) -> Table:
    """Returns the table for runs, each under its era's name: a row of the KIP, its two cells, a column per run."""
    table = Table(title="acks 0 and 1 while the ISR is below min ISR (KIP-966, Ack=0/1 comparison)", show_lines=True)
    for heading in ("", "KIP: current", "KIP: proposed", *(f"measured: {era}" for era, _ in measured)):
        table.add_column(heading, overflow="fold")
    rows: tuple[tuple[str, tuple[str, str], Callable[[AcksComparison], str]], ...] = (
        ("Produce", _PRODUCE, lambda run: _each(run, _produced)),
        ("Consumer", _CONSUMER, lambda run: _each(run, _consumed)),
        ("Replication", _REPLICATION, lambda run: _each(run, _replicated)),
        ("Recover when all replicas have been fenced", _RECOVER, _recovered),
    )
    for name, kip, cell in rows:
        table.add_row(name, *kip, *(cell(run) for _, run in measured))
    return table


def _each(run: AcksComparison, text: Callable[[AcksMeasure], str]) -> str:
    by_level = {measure.acks: measure for measure in run.measures}
    return "\n".join(f"{name}: {text(by_level[acks])}" for acks, name in _LEVELS.items() if acks in by_level)


def _produced(measure: AcksMeasure) -> str:
    return f"{measure.accepted} records accepted, {measure.refused} refused"


def _consumed(measure: AcksMeasure) -> str:
    return f"{measure.read} of {measure.accepted} read"


def _replicated(measure: AcksMeasure) -> str:
    return f"moved by {measure.high_watermark_advance}"


def _recovered(run: AcksComparison) -> str:
    return (
        "\n".join(f"{_LEVELS[each.acks]}: {_returned(each)}" for each in run.returns)
        or "there was a leader all the time"
    )


def _returned(each: Return) -> str:
    how = _ELECTIONS.get(each.election, each.election)
    held = "" if each.log_end_offset is None else f", with a log of {each.log_end_offset} records"
    return f"broker {each.leader} led {how}{held}"

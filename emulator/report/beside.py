"""What runs are called where they stand beside each other."""

from collections.abc import Mapping
from typing import Final

from emulator.report.run_files import ReportedRun

_RULES_MAX: Final = 2
"""Rules and properties by which two runs of one era are told apart."""

_UNNAMED: Final = "unnamed era"


def name_beside(run: ReportedRun, other: ReportedRun) -> str:
    """Returns what a run is called where another one stands beside it: its era, or what else tells them apart."""
    own, others = ({**each.verdict.switches, **each.properties} for each in (run, other))
    return told_apart(
        run.verdict.era or _UNNAMED, own, other.verdict.era or _UNNAMED, others, otherwise=run.directory.name
    )


def told_apart(
    era: str, rules: Mapping[str, str], other_era: str, other_rules: Mapping[str, str], *, otherwise: str
) -> str:
    """Returns an era's name, with the rules and properties that another run of it has otherwise.

    Args:
        era: of the run that is named.
        rules: its rules and properties by name.
        other_era: of the other run.
        other_rules: of the other run.
        otherwise: what tells them apart where nothing else does.
    """
    if era != other_era:
        return era
    apart = [f"{name}={rules[name]}" for name in sorted(rules) if rules[name] != other_rules.get(name)]
    if len(apart) > _RULES_MAX:
        apart[_RULES_MAX:] = [f"{len(apart) - _RULES_MAX} more"]
    return f"{era} ({', '.join(apart) or otherwise})"

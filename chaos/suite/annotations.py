"""A suite's failures as workflow commands of GitHub Actions, which shows them beside the line of the scenario file.

Source: GitHub's documentation of workflow commands, "Setting an error message".
"""

from laststand.chaos.suite.results import CellStatus, SuiteReport

_ESCAPES = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))


def annotations(report: SuiteReport) -> list[str]:
    """Returns a line for each cell that did not pass."""
    return [
        f"::error file={_property(cell.path)},line={cell.line},title={_property(cell.name)}::"
        + _escaped("\n".join(("; ".join(cell.reasons), *cell.story)))
        for cell in report.cells
        if cell.status in (CellStatus.FAILED, CellStatus.UNKNOWN)
    ]


def _escaped(text: str) -> str:
    for character, escape in _ESCAPES:
        text = text.replace(character, escape)
    return text


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")

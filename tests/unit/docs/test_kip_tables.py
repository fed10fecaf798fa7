"""The documents that go through a KIP sentence by sentence name code, and all of it exists."""

import re

import pytest

from emulator.core.eras import is_rule
from tests.unit.docs.places import ROOT, place_problems

_DOCUMENTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("kip-*.md"))}
_HEADER = "| Rule | Where | Switch |"


def _rows(document: str) -> list[tuple[str, str, str]]:
    rows = []
    for line in document.splitlines():
        if line.startswith("|") and line != _HEADER and not line.startswith("|---"):
            _, rule, where, switch, _ = line.split("|")
            rows.append((rule.strip(), where.strip(), switch.strip()))
    return rows


def _problems(document: str) -> list[str]:
    """Returns a line for each cell that says something untrue."""
    problems = []
    for rule, where, switch in _rows(document):
        problems += [f"{rule}: {problem}" for problem in place_problems(where)]
        switches = [] if switch == "—" else switch.split(", ")
        problems += [f"{rule}: {name} is no switch" for name in switches if not is_rule(name.strip("`"))]
    return problems


@pytest.mark.parametrize("name", _DOCUMENTS)
def test_every_named_place_and_switch_exists(name: str) -> None:
    assert _problems(_DOCUMENTS[name]) == []


@pytest.mark.parametrize(("name", "sections"), [("kip-497", 8), ("kip-550", 3), ("kip-704", 5), ("kip-966", 9)])
def test_every_section_is_read(name: str, sections: int) -> None:
    """A table that the parser overlooked would be a check that cannot fail."""
    document = _DOCUMENTS[name]
    assert document.count(_HEADER) == document.count("|---|---|---|") >= sections
    lines = sum(line.startswith("| ") for line in document.splitlines())
    assert len(_rows(document)) == lines - document.count(_HEADER)


@pytest.mark.parametrize(
    ("name", "switch"),
    [
        ("kip-497", "maximal_isr"),
        ("kip-497", "ap_partition_epoch_check"),
        ("kip-497", "ap_broker_epoch_check"),
        ("kip-497", "refusals_are_final"),
        ("kip-497", "answers_await_metadata"),
        ("kip-966", "elr"),
        ("kip-966", "hw_requires_min_isr"),
        ("kip-966", "unclean_detection"),
        ("kip-966", "untouched_logs_stay_proven"),
        ("kip-966", "maximal_isr"),
        ("kip-966", "last_known"),
        ("kip-704", "recovering_gate"),
        ("kip-550", "stray_cleanup"),
        ("kip-550", "produce_topic_id"),
        ("kip-497", "isr_settled_by"),
        ("kip-497", "watch_notifications"),
        ("kip-550", "contains_all_replicas"),
        ("kip-550", "control_broker_epoch_check"),
        ("kip-704", "leader_recovery_state"),
        ("kip-704", "equal_epoch_leader_and_isr"),
    ],
)
def test_every_switch_that_the_kip_is_about_is_told(name: str, switch: str) -> None:
    assert any(f"`{switch}`" in cell for _, _, cell in _rows(_DOCUMENTS[name]))


@pytest.mark.parametrize("name", _DOCUMENTS)
def test_private_names_are_not_advertised(name: str) -> None:
    assert not re.search(r"(::|\.)_", _DOCUMENTS[name])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("| r | `core/nowhere.py::x` | — |", "r: no file core/nowhere.py"),
        ("| r | `core/switches.py::nothing` | — |", "r: no nothing in core/switches.py"),
        ("| r | `core/switches.py::Switches.nothing` | — |", "r: no Switches.nothing in core/switches.py"),
        ("| r | `core/switches.py` | — |", "r: '`core/switches.py`' is not `file::name`"),
        ("| r | | — |", "r: '' is not `file::name`"),
        ("| r | `core/switches.py::Switches.elr` | `erl` |", "r: `erl` is no switch"),
    ],
)
def test_an_untrue_row_is_found(row: str, problem: str) -> None:
    assert _problems(f"{_DOCUMENTS['kip-704']}\n{row}\n") == [problem]

"""The documents that go through a KIP sentence by sentence name code and tests, and all of them exist.

That each test fails without its sentence: ``tests/mutants/test_removals.py``.
"""

import re
from typing import NamedTuple

import pytest

from laststand.emulator.core.eras import is_rule
from tests.mutants.kip_removals import BY_HAND, KIP_REMOVALS
from tests.unit.docs.places import ROOT, named_test_problem, place_problems

_DOCUMENTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("kip-*.md"))}
_HEADER = "| Rule | Where | Switch | Test |"
_NO_TEST = "none"


class _Row(NamedTuple):
    rule: str
    where: str
    switch: str
    test: str


def _rows(document: str) -> list[_Row]:
    rows = []
    for line in document.splitlines():
        if line.startswith("|") and line != _HEADER and not line.startswith("|---"):
            _, *cells, _ = line.split("|")
            rows.append(_Row(*(cell.strip() for cell in cells)))
    return rows


def _problems(document: str) -> list[str]:
    """Returns a line for each cell that says something untrue."""
    problems = []
    for rule, where, switch, test in _rows(document):
        problems += [f"{rule}: {problem}" for problem in place_problems(where)]
        switches = [] if switch == "—" else switch.split(", ")
        problems += [f"{rule}: {name} is no switch" for name in switches if not is_rule(name.strip("`"))]
        problem = None if test == _NO_TEST else named_test_problem(test)
        problems += [] if problem is None else [f"{rule}: {problem}"]
    return problems


@pytest.mark.parametrize("name", _DOCUMENTS)
def test_every_named_place_and_switch_exists(name: str) -> None:
    assert _problems(_DOCUMENTS[name]) == []


@pytest.mark.parametrize(("name", "sections"), [("kip-497", 8), ("kip-550", 3), ("kip-704", 5), ("kip-966", 9)])
def test_every_section_is_read(name: str, sections: int) -> None:
    """A table that the parser overlooked would be a check that cannot fail."""
    document = _DOCUMENTS[name]
    assert document.count(_HEADER) == document.count("|---|---|---|---|") >= sections
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
def test_every_switch_that_the_kip_is_about_is_reported(name: str, switch: str) -> None:
    assert any(f"`{switch}`" in row.switch for row in _rows(_DOCUMENTS[name]))


@pytest.mark.parametrize("name", _DOCUMENTS)
def test_a_row_names_the_test_that_is_seen_to_fail_without_it(name: str) -> None:
    tried = {removal.test for removal in KIP_REMOVALS if removal.row == name}
    tried |= {test for document, test in BY_HAND if document == name}
    named = {f"tests/{row.test.strip('`')}" for row in _rows(_DOCUMENTS[name]) if row.test != _NO_TEST}
    assert named == tried


@pytest.mark.parametrize("name", _DOCUMENTS)
def test_rules_that_no_test_misses_are_listed(name: str) -> None:
    document = _DOCUMENTS[name]
    has_such = any(row.test == _NO_TEST for row in _rows(document))
    assert ("row with `none`" in document) == has_such


@pytest.mark.parametrize("name", _DOCUMENTS)
def test_what_is_not_built_is_reported(name: str) -> None:
    _, _, missing = _DOCUMENTS[name].partition("\n## Not built\n")
    assert missing.count("\n- ") >= 1


@pytest.mark.parametrize("name", _DOCUMENTS)
def test_private_names_are_not_advertised(name: str) -> None:
    assert not re.search(r"(::|\.)_", _DOCUMENTS[name])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("| r | `core/nowhere.py::x` | — | none |", "r: no file core/nowhere.py"),
        ("| r | `core/switches.py::nothing` | — | none |", "r: no nothing in core/switches.py"),
        ("| r | `core/switches.py::Switches.nothing` | — | none |", "r: no Switches.nothing in core/switches.py"),
        ("| r | `core/switches.py` | — | none |", "r: '`core/switches.py`' is not `file::name`"),
        ("| r | | — | none |", "r: '' is not `file::name`"),
        ("| r | `core/switches.py::Switches.elr` | `erl` | none |", "r: `erl` is no switch"),
        ("| r | `core/switches.py::Switches.elr` | `elr` | |", "r: '' is not `path::test`"),
        ("| r | `core/switches.py::Switches.elr` | `elr` | `unit/x.py::test_y` |", "r: no file tests/unit/x.py"),
        (
            "| r | `core/switches.py::Switches.elr` | `elr` | `unit/core/test_image.py::test_y` |",
            "r: no test_y in tests/unit/core/test_image.py",
        ),
        (
            "| r | `core/switches.py::Switches.elr` | `elr` | `interaction/test_scripts.py::test_script[nothing]` |",
            "r: no script nothing",
        ),
    ],
)
def test_an_untrue_row_is_found(row: str, problem: str) -> None:
    assert _problems(f"{_DOCUMENTS['kip-704']}\n{row}\n") == [problem]

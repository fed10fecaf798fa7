"""``docs/failures.md``: each rule that it claims is in the code that it names, and can be taken away as it says."""

import re

import pytest

from docs import failures_table
from docs.failures_table import Failure, KafkaResult
from laststand.emulator.core.eras import era_rules, is_rule, with_rule
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import DEFAULT_ERA, is_switch
from tests.mutants.removals import REMOVALS
from tests.simulation.zookeeper_mutants import LETTER
from tests.simulation.zookeeper_mutants import ROWS as MUTANT_ROWS
from tests.unit.docs.places import ROOT, place_problems
from tests.unit.docs.switch_readers import reads_switch

_NOTHING = "—"
_NO_RULE = "None"
_RESULTS = ("confirmed", "refuted", "not playable", "not played")

SCENARIOS = ROOT / "chaos" / "scenarios"
DOCUMENT = failures_table.DOCUMENT.read_text(encoding="utf-8")
ON_KAFKA = failures_table.kafka_results_of(DOCUMENT)
LOSSES = DOCUMENT.partition("\n[On Apache Kafka]")[2].partition("\n\n")[0]
ROWS = failures_table.all_failures_of(DOCUMENT)


def problems(row: Failure) -> list[str]:
    """Returns a line for each thing that a row says and that is not so."""
    found = []
    if row.where != _NOTHING:
        found += list(place_problems(row.where))
    elif not row.rule.startswith(_NO_RULE):
        found.append("a rule that is nowhere")
    for words in row.named:
        found += _switch_problems(words)
    return found


def _switch_problems(words: str) -> list[str]:
    name, _, rule = words.partition("=")
    if words.endswith(".txt"):
        return [] if (ROOT / words).is_file() else [f"no plan {words}"]
    if "/" in words:
        return [] if list((ROOT / "chaos" / "scenarios").glob(f"{words}.yaml")) else [f"no scenario {words}"]
    if is_rule(name):
        with_rule(era_rules(DEFAULT_ERA if is_switch(name) else LETTER), name, rule or "off")
        return []
    is_property = name.replace(".", "_") in NodeProperties.__struct_fields__
    return [] if is_property else [f"{name} is neither switch nor property"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_names_what_exists(row: Failure) -> None:
    assert problems(row) == []


def rules_of(row: Failure) -> list[str]:
    """Returns the rules that a row names as those that can be switched off."""
    return [name for name in (words.partition("=")[0] for words in row.named) if is_rule(name) and "." not in name]


def has_switch(row: Failure) -> bool:
    """Returns whether a row names a rule that can be switched off, or a protocol version without it."""
    return any(is_rule(words.partition("=")[0]) for words in row.named)


def places_of(row: Failure) -> list[str]:
    """Returns the places that a row names."""
    return [] if row.where == _NOTHING else [place.strip("`") for place in row.where.split("<br>")]


def is_read_where_it_says(row: Failure) -> bool:
    """Returns whether a place of a row reads one of its rules: a row may name others as a condition, too."""
    return any(reads_switch(place, rule) for place in places_of(row) for rule in rules_of(row))


@pytest.mark.parametrize("row", [row for row in ROWS if rules_of(row)], ids=lambda row: row.id)
def test_the_place_of_a_rule_reads_the_switch_that_takes_it_away(row: Failure) -> None:
    assert is_read_where_it_says(row)


@pytest.mark.parametrize("row", [row for row in ROWS if not has_switch(row)], ids=lambda row: row.id)
def test_a_rule_without_a_switch_is_taken_away_at_each_of_its_places(row: Failure) -> None:
    assert [removal.place for removal in REMOVALS if removal.row == row.id] == places_of(row)


def test_a_rule_is_taken_away_where_its_row_says() -> None:
    places = {row.id: places_of(row) for row in ROWS}
    assert [removal for removal in REMOVALS if removal.place not in places[removal.row]] == []


def test_a_place_that_does_not_read_the_switch_is_reported() -> None:
    row = Failure(
        "S99",
        "here",
        "It is lost.",
        "Keep it.",
        "`core/broker/replicas/isr.py::can_expand`",
        "`refusals_are_final=off`",
    )
    assert not is_read_where_it_says(row)
    assert is_read_where_it_says(row._replace(where="`core/controller/alter_partition.py::_outdate_copies`"))


@pytest.mark.parametrize(
    "row",
    [
        Failure("S99", "here", "It is lost.", "Keep it.", _NOTHING, _NOTHING),
        Failure("S99", "here", "It is lost.", "Keep it.", "`core/switches.py::NoSuchRule`", _NOTHING),
        Failure("S99", "here", "It is lost.", "Keep it.", "`core/no_such_file.py::Switches`", _NOTHING),
        Failure("S99", "here", "It is lost.", "Keep it.", "`core/switches.py::Switches`", "`no_such_switch=off`"),
        Failure("S99", "here", "It is lost.", "Keep it.", "`core/switches.py::Switches`", "`kip-966/no-such-scenario`"),
        Failure("S99", "here", "It is lost.", "Keep it.", "`core/switches.py::Switches`", "`tests/no-such-plan.txt`"),
    ],
)
def test_a_row_that_names_what_does_not_exist_is_a_problem(row: Failure) -> None:
    assert problems(row)


def test_every_row_is_read_and_no_id_is_given_twice() -> None:
    titles = sum(line.startswith("| id") for line in DOCUMENT.splitlines())
    assert len(ROWS) + len(ON_KAFKA) == sum(line.startswith("| ") for line in DOCUMENT.splitlines()) - titles
    assert len({row.id for row in ROWS}) == len(ROWS)


def test_every_failure_that_the_simulator_looks_for_has_a_row() -> None:
    assert {row.scenario for row in MUTANT_ROWS.values()} - {"-"} <= {row.id for row in ROWS}


def test_every_failure_that_a_scenario_plays_has_a_row() -> None:
    scenarios = (ROOT / "chaos" / "scenarios").rglob("*.yaml")
    played = {name for path in scenarios for name in re.findall(r"\b[STZ]\d\d\b", path.read_text(encoding="utf-8"))}
    assert played
    assert played <= {row.id for row in ROWS}


def kafka_problems(row: KafkaResult) -> list[str]:
    """Returns a line for each thing that a row says of Kafka and that cannot be so."""
    results = [text.partition(",")[0] for text in (row.played, row.newest)]
    found = [f"no such result: {result}" for result in results if result not in _RESULTS]
    scenarios: list[str] = re.findall(r"`([a-z]+-?\d*/[^`]+)`", row.how)
    found += [f"no scenario {name}" for name in scenarios if not (SCENARIOS / f"{name}.yaml").is_file()]
    if not scenarios and {"confirmed", "refuted"} & set(results):
        found.append("which scenario?")
    return found if row.how else [*found, "why?"]


@pytest.mark.parametrize("row", ON_KAFKA, ids=lambda row: row.id)
def test_what_kafka_does_is_shown_by_a_scenario_or_has_a_reason(row: KafkaResult) -> None:
    assert kafka_problems(row) == []


@pytest.mark.parametrize(
    "row",
    [
        KafkaResult("S99", "perhaps", "refuted", "`kip-966/reassignment`"),
        KafkaResult("S99", "confirmed, 5 of 5", "refuted", "nothing that was played"),
        KafkaResult("S99", "not played", "refuted", "`kip-966/no-such-scenario`"),
        KafkaResult("S99", "not played", "not played", ""),
    ],
)
def test_a_row_about_kafka_that_shows_nothing_is_a_problem(row: KafkaResult) -> None:
    assert kafka_problems(row)


def overlooked(row: KafkaResult, failure: Failure) -> list[str]:
    """Returns the scenarios of a failure of which its row about Kafka says that there is none, or none was played."""
    is_played = "not played" not in (row.played, row.newest) and "by no scenario" not in row.how
    return [] if is_played else [name for name in failure.named if "/" in name and not name.endswith(".txt")]


def test_a_failure_that_a_scenario_plays_is_played_on_kafka_or_cannot_be() -> None:
    failures = {row.id: row for row in failures_table.failures_of(DOCUMENT)}
    assert {row.id: found for row in ON_KAFKA if (found := overlooked(row, failures[row.id]))} == {}


@pytest.mark.parametrize(
    "row",
    [
        KafkaResult("S99", "not played", "not played", "nobody came to it"),
        KafkaResult("S99", "refuted", "not played", "`kip-966/reassignment`"),
        KafkaResult("S99", "not playable", "not playable", "by no scenario"),
    ],
)
def test_a_scenario_that_was_not_played_on_kafka_is_reported(row: KafkaResult) -> None:
    switch = "`elr=off`; played by `tests/simulation/regressions/a.txt`; `kip-966/reassignment`"
    failure = Failure("S99", "here", "It is lost.", "Keep it.", _NOTHING, switch)
    assert overlooked(row, failure) == ["kip-966/reassignment"]
    assert not overlooked(row, failure._replace(switch="`elr=off`"))


def test_the_first_sentences_name_all_that_kafka_lost() -> None:
    covered, not_covered = (ids_of(part) for part in LOSSES.split("the guarantee covers"))
    losses = {row.id: row.played for row in ON_KAFKA if re.match(r"confirmed, \d+", row.played)}
    is_outside = {name: text.endswith("outside of the guarantee") for name, text in losses.items()}
    assert not_covered == [name for name in losses if is_outside[name]]
    assert covered == [name for name in losses if not is_outside[name] and not losses[name].endswith("unread")]


def ids_of(text: str) -> list[str]:
    """Returns the ids that a text names, one by one or as a range: ``S35 to S37``."""
    ids: list[str] = []
    for first, last in re.findall(r"S(\d\d)(?: to S(\d\d))?", text):
        ids += [f"S{number:02}" for number in range(int(first), int(last or first) + 1)]
    return ids


def test_every_failure_of_a_kraft_cluster_says_what_kafka_does() -> None:
    assert [row.id for row in ON_KAFKA] == [row.id for row in failures_table.failures_of(DOCUMENT)]

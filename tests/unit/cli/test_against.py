"""``run --against``: which words belong to which run, what is refused, and what is said of the two."""

import json
import sys
from pathlib import Path

import click
import pytest

from laststand.chaos.campaign import Campaign, EraOrder, EraResult, run_orders
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario
from laststand.cli.commands.run import run
from laststand.cli.main import main
from laststand.cli.output.output import Output
from laststand.cli.output.results import print_results
from laststand.cli.program.user_error import UserError
from laststand.cli.runs.against import OtherRun, check_orders_differ
from laststand.emulator.core.switches import ERAS, with_switch
from laststand.emulator.report.run_files import ReportedRun
from tests.unit.report.judged_runs import kept, lost

STORY = "kip-966/last-replica-standing"


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario(find_scenario(STORY))


@pytest.mark.parametrize(
    ("words", "settings", "other", "driver"),
    [
        ("s --set elr=on --against --set elr=off", ("elr=on",), OtherRun(("elr=off",), None), "process"),
        ("--set=a=1 s --against --era kafka-3.9", ("a=1",), OtherRun((), "kafka-3.9"), "process"),
        ("s --against --set a=1 --driver simulator --set b=2", (), OtherRun(("a=1", "b=2"), None), "simulator"),
        ("--against --set=a=1 --era=kip-966 s", (), OtherRun(("a=1",), "kip-966"), "process"),
        ("s --set a=1", ("a=1",), None, "process"),
    ],
)
def test_what_follows_belongs_to_the_other_run(
    words: str, settings: tuple[str, ...], other: OtherRun | None, driver: str
) -> None:
    found = run.make_context("run", words.split()).params
    assert (found["names"], found["settings"], found["against"]) == (("s",), settings, other)
    assert found["drivers"] == (driver,)


@pytest.mark.parametrize("words", ["s --against --set", "s --against --era a --era b", "s --against --nothing"])
def test_what_follows_must_be_complete(words: str) -> None:
    with pytest.raises(click.UsageError):
        run.make_context("run", words.split())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"run {STORY} --against", "--against: both runs would be of kip-966 with the same rules"),
        (f"run {STORY} --set elr=on --against --era kip-966", "--against: both runs would be of kip-966"),
        ("run kip-497 --against --set elr=off", "--against compares two runs of one scenario on one driver"),
        (
            f"run {STORY} --driver simulator --driver process --against --set elr=off",
            "--against compares two runs of one scenario on one driver",
        ),
        (f"run {STORY} --repeat 2 --against --set elr=off", "--against takes no option of suites"),
        ("run --rerun results.json --against --set elr=off", "--against takes no option of suites"),
        (f"run {STORY} --no-verify --against --set elr=off", "it excludes --no-verify"),
        (
            f"run {STORY} --era kip-966 --era kafka-3.9 --against --set elr=off",
            "the first one would be kip-966, kafka-3.9: give it one --era",
        ),
        (f"run {STORY} --against --set nothing=1", "nothing"),
        (f"run {STORY} --against --era kafka-1.0", "kafka-1.0"),
        (f"run {STORY} --against --set", "behind --against: Option '--set' requires an argument"),
    ],
)
def test_a_mistake_is_a_line(
    command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["laststand", *command.split()])
    assert main() == 254
    shown = capfd.readouterr()
    (line,) = shown.err.splitlines()
    assert said in line
    assert (shown.out, list(tmp_path.iterdir())) == ("", [])


def of(era: str, *, properties: tuple[tuple[str, str], ...] = (), **rules: str) -> EraOrder:
    switches = ERAS[era]
    for name, rule in rules.items():
        switches = with_switch(switches, name, rule)
    return EraOrder(era=era, switches=switches, properties=properties)


@pytest.mark.parametrize(
    ("order", "label", "expected"),
    [
        (of("kip-966"), "kip-966", "valid"),
        (of("kafka-3.9"), "kafka-3.9", "violation"),
        (of("kip-966", elr="on"), "kip-966", "valid"),
        (of("kip-966", elr="off"), "kip-966 with elr=off", "nothing"),
        (
            of("kip-966", properties=(("min.insync.replicas", "1"),), elr="off"),
            "kip-966 with elr=off, min.insync.replicas=1",
            "nothing",
        ),
    ],
)
def test_a_run_is_called_by_its_era_and_what_it_changes_and_expectations_hold_for_the_era_as_it_is(
    tmp_path: Path, scenario: Scenario, order: EraOrder, label: str, expected: str
) -> None:
    campaign = Campaign(scenario=scenario, eras=(order,), store=tmp_path, seed=1, toxiproxy=None)
    (made,) = run_orders(campaign)
    assert made.name == label
    found = scenario.expectation(made.name)
    assert ("nothing" if found is None else found.verdict.value) == expected


def test_two_runs_of_the_same_are_none(scenario: Scenario) -> None:
    check_orders_differ(scenario, of("kip-966"), of("kip-966", elr="off"))
    with pytest.raises(UserError):
        check_orders_differ(scenario, of("kip-966"), of("kip-966", elr="on"))


def result_of(run: ReportedRun, scenario: Scenario, era: str, *changed: str) -> EraResult:
    order = RunOrder(
        scenario=scenario,
        directory=run.directory,
        era=era,
        switches=ERAS[era],
        properties=(),
        seed=1,
        toxiproxy=None,
        changed=changed,
    )
    return EraResult(order=order, report=run.verdict)


def test_the_last_lines_say_where_two_runs_part(
    tmp_path: Path, scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    results = (
        result_of(lost(tmp_path / "a" / "1"), scenario, "kafka-3.9"),
        result_of(kept(tmp_path / "b" / "1"), scenario, "kip-966", "elr=off"),
    )
    print_results(scenario, results, (None, None), is_compared=True, output=Output.TEXT)
    text = capsys.readouterr().out
    verdicts, _, parting = text.partition("\n\nThe two clusters decide alike until ")
    assert [line.partition("  ")[0] for line in verdicts.splitlines()[-2:]] == ["kafka-3.9", "kip-966 with elr=off"]
    assert "acks=all  lost  100 records  0 records" in parting
    print_results(scenario, results, (None, None), is_compared=True, output=Output.JSON)
    document = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in document["runs"]] == ["kafka-3.9", "kip-966 with elr=off"]
    assert document["comparison"]["decisions"].startswith("The two clusters decide alike until ")
    assert document["comparison"]["differences"]

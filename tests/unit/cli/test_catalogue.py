"""Lists that ``laststand`` prints: every check, era and scenario, a line each."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from laststand.chaos.scenario.scenario_file import scenario_names
from laststand.cli.commands.eras import ERA_SUMMARIES
from laststand.cli.main import cli
from laststand.cli.program.user_error import UserError
from laststand.emulator.core.eras import ALL_ERAS
from laststand.emulator.core.promises import PROMISES


def typed(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def first_words(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines()[1:]]


def test_every_check_is_listed_with_what_must_hold() -> None:
    assert first_words(typed("checks")) == list(PROMISES)
    listed = {each["check_id"]: each for each in json.loads(typed("checks", "--json"))}
    assert {check_id: each["statement"] for check_id, each in listed.items()} == {
        check_id: promise.statement for check_id, promise in PROMISES.items()
    }


def test_a_check_is_explained() -> None:
    assert typed("checks", "h2") == (
        "H2 HWGate (rule)\n"
        f"  {PROMISES['H2'].statement}\n"
        "  promised: where hw_requires_min_isr is on\n"
        "  judged by: laststand verify, and the simulator while it runs\n"
    )
    assert "promised: in every era" in typed("checks", "D1")


def test_a_check_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UserError, match="no check 'D99'"):
        typed("checks", "D99")
    with pytest.raises(UserError, match="did you mean 'D1'"):
        typed("checks", "d1x")


def test_every_era_is_listed() -> None:
    assert list(ERA_SUMMARIES) == list(ALL_ERAS)
    assert first_words(typed("eras")) == list(ALL_ERAS)
    assert [each["era"] for each in json.loads(typed("eras", "--json"))] == list(ALL_ERAS)


def test_every_scenario_is_listed_with_its_title() -> None:
    listed = json.loads(typed("scenarios", "--json"))
    assert [each["name"] for each in listed] == scenario_names()
    assert all(each["title"] for each in listed)


def test_a_scenario_is_listed_with_what_it_does_and_who_plays_it() -> None:
    listed = {each["name"]: each for each in json.loads(typed("scenarios", "--json"))}
    story = listed["kip-966/last-replica-standing"]
    assert {"power_loss", "isolate"} <= set(story["actions"])
    assert story["drivers"] == ["process", "docker", "simulator", "kafka", "external"]
    assert story["expected"]["kafka-3.9"] == "violation"


def test_a_new_scenario_is_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "laststand run mine/first.yaml" in typed("scenarios", "new", "mine/first")
    assert typed("scenarios", "check", "mine", "kip-497") == "3 scenarios in order\n"
    assert typed("scenarios", "check", "mine/first.yaml") == "1 scenario in order\n"
    with pytest.raises(UserError, match="exists already"):
        typed("scenarios", "new", "mine/first")
    with pytest.raises(UserError, match="is no name"):
        typed("scenarios", "new", "../first")


def test_every_file_that_is_not_in_order_is_reported(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text("steps: []\nworkload: {}\n")
    with pytest.raises(UserError) as told:
        typed("scenarios", "check", str(tmp_path), "kip-497", "nothing")
    first, second, third = str(told.value).splitlines()
    assert (first, second) == tuple(f"{tmp_path}/{name}.yaml:1: needs the key 'name'" for name in ("a", "b"))
    assert "nothing" in third


def test_the_list_fits_a_terminal_and_says_what_each_scenario_shows() -> None:
    lines = typed("scenarios").splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[::2] == scenario_names()
    titles = [line.strip() for line in lines[1::2]]
    assert all(title[0].isupper() and not title.endswith(".") for title in titles)
    assert {title for title in titles if titles.count(title) > 1} == {
        "A leader that was elected uncleanly recovers before it serves"
    }, "two scenarios of one title"


@pytest.mark.parametrize("title", ["''", '"two\\nlines"', "x" * 79])
def test_a_title_is_one_line(title: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"name: a\ntitle: {title}\n")
    with pytest.raises(UserError, match=r"a\.yaml:2: title: expected one line"):
        typed("scenarios", "check", str(path))

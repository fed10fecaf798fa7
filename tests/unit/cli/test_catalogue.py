"""What ``laststand`` lists: every check, era and scenario, a line each."""

import json

import pytest
from click.testing import CliRunner

from chaos.scenario.scenario_file import scenario_names
from emulator.cli.catalogue import ERA_SUMMARIES, summary_of
from emulator.cli.main import cli
from emulator.cli.user_error import UserError
from emulator.core.promises import PROMISES
from emulator.core.switches import ERAS


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


def test_every_era_is_listed() -> None:
    assert list(ERA_SUMMARIES) == list(ERAS)
    assert first_words(typed("eras")) == list(ERAS)
    assert [each["era"] for each in json.loads(typed("eras", "--json"))] == list(ERAS)


def test_every_scenario_is_listed_with_a_summary() -> None:
    assert first_words(typed("scenarios")) == scenario_names()
    listed = json.loads(typed("scenarios", "--json"))
    assert [each["name"] for each in listed] == scenario_names()
    assert all(each["summary"].endswith((".", ":")) for each in listed)


def test_a_file_without_comment_has_no_summary() -> None:
    assert summary_of("name: x\n# not at the top.\n") == ""

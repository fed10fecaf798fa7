"""Scenarios that names on the command line stand for."""

from pathlib import Path

import pytest

from laststand.chaos.scenario.scenario_file import scenario_names
from laststand.chaos.suite.selection import select, suite_names
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.plan.yaml_cursor import ScenarioError

SCENARIO = """\
name: {name}
cluster: {{brokers: 1}}
topics: [{{name: orders, replicas: [[0]]}}]
workload: {{producers: [{{acks: all, rate: 10}}]}}
steps:
  - until: {{acked: 1}}
"""


def scenario(path: Path, name: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SCENARIO.format(name=name))
    return path


def suite(path: Path, *members: str, eras: str = "") -> Path:
    path.write_text("suite: own\n" + (f"eras: {eras}\n" if eras else "") + f"scenarios: [{', '.join(members)}]\n")
    return path


def names(*given: object) -> list[str]:
    return [each.scenario.name for each in select([str(name) for name in given])]


def test_files_and_bundled_names(tmp_path: Path) -> None:
    assert names(scenario(tmp_path / "a.yaml", "mine"), "kip-966/reassignment") == ["mine", "kip-966/reassignment"]


def test_a_folder_is_all_below_it(tmp_path: Path) -> None:
    scenario(tmp_path / "b.yaml", "b")
    scenario(tmp_path / "deep/er/a.yml", "a")
    (tmp_path / "notes.txt").write_text("name: none\n")
    assert names(tmp_path) == ["b", "a"]


def test_what_a_folder_holds_beside_scenarios_is_left_out(tmp_path: Path) -> None:
    mine = scenario(tmp_path / "mine.yaml", "mine")
    scenario(tmp_path / ".github/workflows/hidden.yaml", "hidden")
    (tmp_path / "compose.yaml").write_text("name: laststand\nservices: {}\n")
    (tmp_path / "azure-pipelines.yml").write_text("trigger: [main]\nsteps:\n  - script: make\n")
    run = scenario(tmp_path / "store/mine/20260101T000000.000/plan.yaml", "mine")
    (run.parent / "events").mkdir()
    assert names(tmp_path) == ["mine"]
    mine.write_text("name: mine\nsteps: []\n")
    with pytest.raises(ScenarioError, match="cluster"):
        names(tmp_path)


def test_a_folder_of_bundled_scenarios() -> None:
    assert names("kip-497") == [name for name in scenario_names() if name.startswith("kip-497/")]


def test_a_file_that_is_named_twice_is_played_once(tmp_path: Path) -> None:
    path = scenario(tmp_path / "a.yaml", "mine")
    assert names(path, tmp_path) == ["mine"]


def test_a_suite_file_lists_scenarios_and_eras(tmp_path: Path) -> None:
    scenario(tmp_path / "folder/a.yaml", "a")
    inner = suite(tmp_path / "inner.yaml", "folder", eras="[kafka-4.2]")
    outer = suite(tmp_path / "outer.yaml", "kip-966/reassignment", "inner.yaml", "folder/a", eras="[kip-966]")
    chosen = select([str(outer)])
    assert [(each.scenario.name, each.eras) for each in chosen] == [
        ("kip-966/reassignment", ("kip-966",)),
        ("a", ("kafka-4.2", "kip-966")),
    ]
    assert select([str(inner)])[0].eras == ("kafka-4.2",)


def test_a_suite_file_may_ask_for_eras_with_zookeeper(tmp_path: Path) -> None:
    scenario(tmp_path / "a.yaml", "a")
    (only,) = select([str(suite(tmp_path / "own.yaml", "a", eras="[kafka-3.9-zk]"))])
    assert only.eras == ("kafka-3.9-zk",)


@pytest.mark.parametrize("name", suite_names())
def test_bundled_suites_can_be_named(name: str) -> None:
    assert select([name]) == select([f"chaos/suites/{name}"])


def test_a_suite_that_leads_back_to_itself_is_refused_with_the_line(tmp_path: Path) -> None:
    suite(tmp_path / "one.yaml", "two.yaml")
    two = suite(tmp_path / "two.yaml", "one.yaml")
    with pytest.raises(ScenarioError, match=rf"{two}:2: scenarios: one\.yaml leads back to this suite"):
        select([str(tmp_path / "one.yaml")])


def test_a_member_that_does_not_exist_is_refused_with_the_line(tmp_path: Path) -> None:
    path = suite(tmp_path / "one.yaml", "kip-966/reasignment")
    with pytest.raises(ScenarioError, match=rf"{path}:2: .* did you mean .*kip-966/reassignment"):
        select([str(path)])


def test_two_scenarios_of_one_name_are_refused(tmp_path: Path) -> None:
    first, second = scenario(tmp_path / "a.yaml", "same"), scenario(tmp_path / "b.yaml", "same")
    with pytest.raises(ScenarioError, match=f"{second}:1: name: 'same' is the name of {first}, too"):
        select([str(tmp_path)])


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a folder with scenarios"):
        select([str(tmp_path)])


def test_a_name_that_stands_for_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean"):
        select(["kip-966/reasignment"])
    with pytest.raises(ConfigError, match="smoke"):
        select(["nothing-like-it"])


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match=f"{path}:1: cannot be read"):
        select([str(path)])

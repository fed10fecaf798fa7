"""The playground's session, as a browser runs it: pictures of a plan's run, located problems, and found losses."""

import json
import subprocess
import sys
from functools import cache
from random import Random

import crc32c
import msgspec

from docs.playground import build, session
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.writer import play_and_stop


@cache
def stories() -> list[dict[str, str]]:
    """Returns what the page offers: not at import, which each worker of the tests does."""
    return list(build._presets())


def story() -> str:
    """Returns the plan that the page opens with."""
    return stories()[0]["plan"]


def scenario() -> str:
    """Returns a plan that was made of a scenario."""
    return next(each["plan"] for each in stories() if each["title"] == "kip-966/last-replica-standing")


def test_a_plan_is_pictured_action_by_action() -> None:
    played = session.play(story())
    plan = parse_plan(story())
    assert played.problem is None
    assert played.verdict == "violation, guarantee broken, 3 acks=all records lost"
    assert len(played.frames) == len(plan.actions) + 2
    lines = story().splitlines()
    assert [frame.text for frame in played.frames[1:-1]] == [lines[frame.line - 1] for frame in played.frames[1:-1]]
    powerless = next(frame for frame in played.frames if frame.text.startswith("power-loss"))
    assert powerless.nodes["2"] == "down"
    assert powerless.partitions["orders-0"].replicas["2"].spans == ()
    assert powerless.partitions["orders-0"].replicas["0"].spans == (session.EpochSpan(0, 0, 5),)
    leaderless = next(frame for frame in played.frames if frame.partitions["orders-0"].leader is None)
    assert leaderless.missing == 0  # two brokers have them
    assert [frame.missing for frame in played.frames][-3:] == [3, 3, 3]
    assert any(alarm.startswith("!D1: ") for frame in played.frames for alarm in frame.alarms)


def test_the_digest_is_of_the_events_that_a_replay_has() -> None:
    journal = Journal()
    play_and_stop(parse_plan(story()), journal=journal)
    assert session.play(story()).digest == journal.digest()


def test_nothing_is_missing_in_the_era_that_the_story_recommends() -> None:
    played = session.play(story().replace("kafka-3.9", "kip-966"))
    assert played.verdict == "valid, 0 acks=all records lost"
    assert played.frames[-1].missing == 0


def test_a_problem_of_the_text_has_its_line() -> None:
    played = session.play(story().replace("start 2", "strat 2"))
    assert (played.line, played.frames) == (story().splitlines().index("start 2") + 1, ())
    assert played.problem is not None
    assert played.problem.startswith(f"line {played.line}: ")


def test_a_loss_is_found_and_shrunk_to_a_plan_that_loses() -> None:
    found = (json.loads(session.explore_as_json(seed, "kip-966", "elr=off")) for seed in range(19, 40))
    explored = next(each for each in found if each["finding"])
    assert session.play(explored["plan"]).verdict.startswith("violation")


def test_the_page_knows_every_rule_of_an_era() -> None:
    rules = json.loads(session.rules_as_json())
    assert rules["kip-966"]["elr"] == "on"
    assert rules["kafka-3.9"]["elr"] == "off"


def test_every_story_of_the_page_can_be_played() -> None:
    plans = [each["plan"] for each in stories() if not session.is_scenario(each["plan"])]
    assert all(parse_plan(plan).actions for plan in plans)
    assert len(plans) > 50
    assert len(stories()) - len(plans) > 80


def test_a_scenario_is_played_step_by_step() -> None:
    played = session.play(scenario())
    assert played.problem is None
    assert played.verdict.startswith("violation, guarantee broken, ")
    assert [frame.line for frame in played.frames[1:-1]] == sorted(frame.line for frame in played.frames[1:-1])
    assert played.frames[1].acks > 10
    assert played.frames[-1].missing > 100
    assert any("power_loss" in frame.text for frame in played.frames)


def test_a_scenario_with_another_rule_is_played_by_it() -> None:
    changed = scenario().replace("era: kafka-3.9", "era: kip-966\nswitches: {elr: 'off'}")
    assert session.play(changed).verdict.startswith("violation")


def test_a_problem_of_a_scenario_has_its_line() -> None:
    played = session.play(scenario().replace("isolate:", "isolat:"))
    assert played.problem is not None
    assert "isolat" in scenario().replace("isolate:", "isolat:").splitlines()[played.line - 1]


def test_a_scenario_that_virtual_time_cannot_play_says_why() -> None:
    scenario = (build._SCENARIOS / "faults" / "flipped-bit.yaml").read_text()
    assert "a simulated batch has no bits" in (session.play(scenario).problem or "")


def test_the_browser_has_everything_that_a_session_imports() -> None:
    """Every module is in the archive, or comes with Python or msgspec's wheel."""
    code = "import sys, docs.playground.session; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-S", "-c", _PATH + code], capture_output=True, text=True, check=True)
    archive = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for _, name in build._sources()}
    own = {name for name in loaded.stdout.split() if name.split(".")[0] in ("laststand", "yaml", "typing_extensions")}
    assert {name for name in own if name not in archive} <= {"yaml._yaml"}


_PATH = f"import sys; sys.path[:] = {sys.path!r}\n"


def test_crc_32c_by_the_table_is_that_of_the_library() -> None:
    by_table: dict[str, object] = {}
    exec(build._CRC32C, by_table)
    table = by_table["crc32c"]
    assert callable(table)
    for size in (0, 1, 9, 300):
        content = Random(size).randbytes(size)
        assert table(content) == crc32c.crc32c(content)


def test_what_the_worker_gets_is_json() -> None:
    assert msgspec.json.decode(session.play_as_json(story()), type=session.Played) == session.play(story())

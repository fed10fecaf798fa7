"""The document of a plan, there and back, and where what is wrong with one is said to be."""

from pathlib import Path

import pytest

from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.plan.plan_yaml import format_plan_yaml, has_workload, read_numbered_yaml, read_plan_yaml
from laststand.emulator.plan.yaml_cursor import ScenarioError

ROOT = Path(__file__).parents[3]
KEPT = sorted((ROOT / "tests/simulation/regressions").glob("*.txt"))
PATH = Path("plan.yaml")

DOCUMENT = """\
name: simulated/7
era: kip-966
switches: {elr: 'off'}
cluster: {brokers: 3, properties: {broker.session.timeout.ms: 500}}
topics:
- {name: orders, replicas: [[0, 1, 2]], min.insync.replicas: 2}
steps:
- {produce: {partition: orders-0, producer: producer-all, records: 1}}
- {wait: {for: 120 ms}}
- {hold: {responses: Sync, from: controller, to: controller}}
- {power_loss: {node: 0, keep: none, kept: 0, truncation: kept, names: kept}}
"""


def test_there_and_back() -> None:
    assert format_plan_yaml(read_plan_yaml(PATH, DOCUMENT), name="simulated/7") == DOCUMENT


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_plan_is_the_same_plan_as_a_document(path: Path) -> None:
    plan = parse_plan(path.read_text())
    assert read_plan_yaml(PATH, format_plan_yaml(plan, name="kept")) == plan


def test_a_plan_without_actions_is_a_document_too() -> None:
    plan = read_plan_yaml(PATH, DOCUMENT).with_actions(())
    assert read_plan_yaml(PATH, format_plan_yaml(plan, name="a")) == plan


def test_parts_have_their_lines() -> None:
    numbered = read_numbered_yaml(PATH, DOCUMENT)
    assert (numbered.cluster_line, numbered.topic_lines, numbered.action_lines) == (4, (6,), (8, 9, 10, 11))


def test_a_document_with_a_workload_is_a_scenario() -> None:
    assert not has_workload(PATH, DOCUMENT)
    assert has_workload(PATH, DOCUMENT + "workload: {producers: []}\n")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("name: simulated/7\n", "", "plan.yaml:1: needs the key 'name'"),
        ("era: kip-966", "era: kip-967", "plan.yaml:2: era: 'kip-967' is not allowed"),
        ("{elr: 'off'}", "{elr: perhaps}", "plan.yaml:3: elr: 'perhaps' is not allowed"),
        ("{elr: 'off'}", "{erl: 'off'}", "plan.yaml:3: erl: unknown property"),
        ("brokers: 3,", "brokers: 0,", "plan.yaml:4: brokers: expected a whole number from 1 to 100"),
        ("broker.session.timeout.ms: 500", "no.such: 5", "plan.yaml:4: no.such: unknown property"),
        ("broker.session.timeout.ms: 500", "log.flush.interval.ms: 5", "the simulated disk has no timed flush"),
        ("[[0, 1, 2]]", "[[0, 1, 3]]", "plan.yaml:6: replicas: no broker 3"),
        ("min.insync.replicas: 2", "flush.ms: 2", "plan.yaml:6: topics: the simulated disk has no timed flush"),
        (
            "steps:\n",
            "- {name: orders, replicas: [[0]]}\nsteps:\n",
            "plan.yaml:7: topics: topic 'orders' is there twice",
        ),
        ("- {name: orders, replicas: [[0, 1, 2]], min.insync.replicas: 2}", "  []", "topics: needs at least one topic"),
        ("producer-all", "producer-x", "plan.yaml:8: producer: 'producer-x' is not allowed"),
        (
            "{wait: {for: 120 ms}}",
            "{until: {node: 1, fenced: true}}",
            "plan.yaml:9: until: there is no such step or fault",
        ),
        ("{wait: {for: 120 ms}}", "{wait: {for: 1 ms}, heal: all}", "plan.yaml:9: steps: a step is one of wait,"),
        ("{wait: {for: 120 ms}}", "{kill: {node: leader}}", "plan.yaml:9: kill: a plan names nodes by their ids"),
        (
            "{wait: {for: 120 ms}}",
            "{kill: {node: 1, as: victim}}",
            "plan.yaml:9: kill: a plan names nodes by their ids",
        ),
        ("node: 0, keep", "node: 7, keep", "plan.yaml:11: node: no node 7"),
        ("steps:", "expect: {}\nsteps:", "plan.yaml:7: expect: unknown key, allowed: name, era, switches"),
    ],
)
def test_what_is_no_plan_is_said_with_its_place(old: str, new: str, complaint: str) -> None:
    assert old in DOCUMENT
    with pytest.raises(ScenarioError) as raised:
        read_plan_yaml(PATH, DOCUMENT.replace(old, new))
    assert complaint in str(raised.value)

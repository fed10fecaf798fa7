"""The JSON Schema of scenario files allows what can be read, and finds mistakes in keys and values."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from laststand.chaos.scenario.scenario_file import find_scenario, scenario_names
from laststand.chaos.scenario.schema import scenario_schema
from laststand.cli.main import cli
from tests.documented_scenarios import ROOT, documented_scenarios

VALIDATOR = jsonschema.Draft202012Validator(scenario_schema())

EXAMPLES = [path for path in sorted(ROOT.glob("docs/examples/**/*.yaml")) if "\nsteps:" in path.read_text()]

STORY = find_scenario("kip-966/last-replica-standing").read_text()


def mistakes(document: object) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(document)]


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(scenario_schema())
    printed = CliRunner().invoke(cli, ["scenarios", "schema"], standalone_mode=False)
    assert json.loads(printed.output) == scenario_schema()


@pytest.mark.parametrize("name", scenario_names())
def test_bundled_scenarios_are_allowed(name: str) -> None:
    assert mistakes(yaml.safe_load(find_scenario(name).read_text())) == []


@pytest.mark.parametrize("name", documented_scenarios())
def test_documented_scenarios_are_allowed(name: str) -> None:
    assert mistakes(yaml.safe_load(documented_scenarios()[name].text)) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_allowed(path: Path) -> None:
    assert mistakes(yaml.safe_load(path.read_text())) == []


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("naem", "x"),
        ("name", "../x"),
        ("steps", []),
        ("steps", [{"explode": {"node": 1}}]),
        ("steps", [{"kill": {"node": 1}, "start": {"node": 1}}]),
        ("steps", [{"kill": {"node": 1, "hard": True}}]),
        ("steps", [{"until": {"within": "5 s"}}]),
        ("steps", [{"until": {"acked": 5, "acks": 2}}]),
        ("steps", [{"heal": "some"}]),
        ("end", "restored"),
        ("expect", {"kafka-1.0": {"verdict": "valid"}}),
        ("expect", {"kip-966": {"verdict": "fine"}}),
        ("cluster", {"brokers": 0}),
        ("cluster", {"brokers": 3, "kafka_clients": {"app": 1}}),
        ("topics", [{"replicas": [[0]]}]),
        ("workload", {"producers": [{"acks": "all", "rat": 5}]}),
    ],
)
def test_a_mistake_is_found(place: str, value: Any) -> None:
    document = yaml.safe_load(STORY)
    assert mistakes(document) == []
    document[place] = value
    assert mistakes(document)


@pytest.mark.parametrize("key", ["name", "cluster", "topics", "workload", "steps"])
def test_required_fields_must_be_present(key: str) -> None:
    document = yaml.safe_load(STORY)
    del document[key]
    assert mistakes(document)

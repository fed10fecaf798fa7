"""Reads a plan's file, and refuses actions that are impossible on its cluster.

While a plan is played, an action that is impossible at the moment is skipped. An action that is never possible is an
error in the plan: if it were skipped, the plan would seem to find nothing.
"""

from pathlib import Path

from laststand.cli.program.user_error import UserError
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.properties import check_topic_properties
from laststand.emulator.plan.lines import format_action
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.plan.plan import NumberedPlan, Plan, PlanLineError, parse_numbered
from laststand.emulator.plan.plan_lint import find_problem
from laststand.emulator.plan.plan_yaml import has_workload, read_numbered_yaml
from laststand.emulator.plan.topics import PlannedTopic
from laststand.emulator.plan.yaml_cursor import ScenarioError
from laststand.emulator.user_files import read_document

_YAML_SUFFIXES = (".yaml", ".yml")


def is_scenario(path: Path) -> bool:
    """Returns whether a file has clients of its own, as scenarios and the recorded plans of scenarios have.

    Raises:
        UserError: the file cannot be read, or is not YAML.
    """
    if path.suffix not in _YAML_SUFFIXES:
        return False
    try:
        return has_workload(path, _text(path))
    except ScenarioError as error:
        raise UserError(str(error)) from None


def read_plan(path: Path) -> NumberedPlan:
    """Returns the plan of a file, a document or lines, with its lines.

    Raises:
        UserError: the file cannot be read, is not a plan, or names things that its cluster does not have.
    """
    text = _text(path)
    try:
        numbered = read_numbered_yaml(path, text) if path.suffix in _YAML_SUFFIXES else parse_numbered(text)
        _check_topics(numbered)
    except ScenarioError as error:
        raise UserError(str(error)) from None
    except ConfigError as error:
        raise UserError(f"{path}: {error}") from None
    for line, action in zip(numbered.action_lines, numbered.plan.actions, strict=True):
        problem = find_problem(numbered.plan, action)
        if problem is not None:
            raise UserError(f"{path}: line {line}: '{format_action(action)}': {problem}")
    return numbered


def _text(path: Path) -> str:
    try:
        return read_document(path, encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file, so it is no plan") from None


def _check_topics(numbered: NumberedPlan) -> None:
    plan = numbered.plan
    if not 1 <= plan.brokers <= CONTROLLER:
        error = ConfigError(key="brokers", value=str(plan.brokers), expected=f"1 to {CONTROLLER}")
        raise PlanLineError(error, line=numbered.cluster_line)
    lines: dict[str, int] = {}
    for line, topic in zip(numbered.topic_lines, plan.topics, strict=True):
        try:
            _check_topic(plan, topic)
            if (first := lines.setdefault(topic.name, line)) != line:
                raise ConfigError(key="topic", value=topic.name, expected=f"one such line, and line {first} is it")
        except ConfigError as error:
            raise PlanLineError(error, line=line) from None


def _check_topic(plan: Plan, topic: PlannedTopic) -> None:
    if "=" in topic.name:
        raise ConfigError(key="topic", value=topic.name, expected="a name first")
    for replicas in topic.replicas:
        if len(set(replicas)) < len(replicas) or not set(replicas) <= set(range(plan.brokers)):
            ids = ",".join(map(str, replicas))
            there = Names(brokers=plan.brokers, partitions=()).broker_range
            raise ConfigError(key="replicas", value=f"({ids})", expected=f"different {there}")
    check_topic_properties(dict(topic.properties))

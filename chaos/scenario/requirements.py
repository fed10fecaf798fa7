"""Requirements of a scenario on rules and era: without them a step would wait for a state that cannot come.

``requires: {elr: on, eras: [kafka-4.2, kip-966]}`` in the file says so; a list allows several rules. A barrier that
names members of an ELR requires ``elr: on`` by itself.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.scenario import Requirement, Scenario, Step
from laststand.emulator.core.eras import (
    ALL_ERAS,
    ZOOKEEPER_RULES,
    changes,
    era_rules,
    is_zookeeper_era,
    rule_choices,
    rule_texts,
    strange_protocol,
    unanswered_protocol,
    with_rule,
)
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.release import check_metadata_version
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.plan import actions
from laststand.emulator.plan.yaml_cursor import Cursor

ERAS_KEY: Final = "eras"
RULES: Final = (*Switches.__struct_fields__, *ZOOKEEPER_RULES)
"""Rules that a scenario can require."""


def read_requirements(cursor: Cursor) -> tuple[Requirement, ...]:
    """Reads the value of ``requires``.

    Raises:
        ScenarioError: no such rule, era or value of a rule.
    """
    found = []
    with cursor.fields() as fields:
        for name in (ERAS_KEY, *RULES):
            value = fields.optional(name)
            if value is not None:
                choices = ALL_ERAS if name == ERAS_KEY else rule_choices(name)
                members = value.items() if value.is_list else [value]
                allowed = tuple(member.choice(choices) for member in members)
                found.append(Requirement(name=name, allowed=allowed, line=value.line, source=f"{cursor.key}: {name}"))
    return tuple(found)


def requirements_of(steps: Sequence[Step]) -> Iterator[Requirement]:
    """Yields the requirement of the first barrier about an ELR, unless steps change features before it."""
    for number, step in enumerate(steps, start=1):
        if isinstance(step.action, actions.UpdateFeature):
            return
        condition = step.action.condition if isinstance(step.action, conditions.Until) else None
        if isinstance(condition, conditions.PartitionIs) and condition.elr:
            yield Requirement(name="elr", allowed=("on",), line=step.line, source=f"step {number} {step.text}")
            return


def rules_of(scenario: Scenario, era: str) -> Switches:
    """Returns the rules of an era, with the protocol version that a scenario names for clusters with ZooKeeper."""
    rules = era_rules(era)
    if scenario.protocol is None or not is_zookeeper_era(era):
        return rules
    return with_rule(rules, PROPERTY, scenario.protocol.version)


def changes_of(
    scenario: Scenario, era: str, switches: Switches, properties: Sequence[tuple[str, str]]
) -> tuple[str, ...]:
    """Returns the changes of a run, as ``name=value``, by name: rules of the era and properties of the scenario.

    Args:
        scenario: the scenario.
        era: name of the era.
        switches: the rules of the run.
        properties: of every node of the run.
    """
    return changes(switches, rules_of(scenario, era), properties, scenario.properties)


def unmet(
    scenario: Scenario, era: str, switches: Switches, properties: Sequence[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """Describes the requirements of a scenario that an era, with changes, does not meet.

    Args:
        scenario: the scenario.
        era: name of the era.
        switches: its rules, with the user's changes.
        properties: the user's, which replace the scenario's.
    """
    have = {**rule_texts(switches), ERAS_KEY: era}
    stranger = strange_protocol(switches, brokers=scenario.brokers)
    if stranger is not None:
        return (f"{PROPERTY}={stranger} names a broker that is none of 0 to {scenario.brokers - 1}",)
    started_with = [
        action.inter_broker_protocol_version
        for step in scenario.steps
        if isinstance(action := step.action, actions.Start) and action.inter_broker_protocol_version is not None
    ]
    unanswered = unanswered_protocol(switches, started_with=started_with)
    if unanswered is not None:
        return (f"{PROPERTY}={unanswered} is newer than the release of {era}",)
    if scenario.controllers > 1 and is_zookeeper_era(era):
        return (f"controllers: {scenario.controllers} have no place in era {era}, whose metadata is in ZooKeeper",)
    if scenario.combined and is_zookeeper_era(era):
        return (f"combined: era {era} has no controllers that share a process with brokers",)
    try:
        check_metadata_version(dict((*scenario.properties, *properties)), switches)
    except ConfigError as error:
        return (f"{error} ({era})",)
    return tuple(
        f"{each.source} (line {each.line}) requires {_wanted(each)}, and {_found(each, era, have.get(each.name))}"
        for each in scenario.requires
        if have.get(each.name) not in each.allowed
    )


def _wanted(each: Requirement) -> str:
    words = " or ".join(each.allowed)
    return f"era {words}" if each.name == ERAS_KEY else f"{each.name}={words}"


def _found(each: Requirement, era: str, rule: str | None) -> str:
    if each.name == ERAS_KEY:
        return f"this is {era}"
    return f"{era} has no such rule" if rule is None else f"{era} is played with {each.name}={rule}"

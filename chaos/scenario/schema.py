"""The JSON Schema of scenario files, for editors; ``scenario_file`` has the last word."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.conditions_yaml import ACKS, ANY, CONDITION_KEYS, SUBJECTS
from laststand.chaos.scenario.requirements import ERAS_KEY, RULES
from laststand.chaos.scenario.scenario import Ending, MissedStep, VerdictName
from laststand.chaos.scenario.scenario_file import BROKERS_MAX, KAFKA_CLIENTS, TITLE_LENGTH_MAX
from laststand.chaos.scenario.step_reader import EVERY, PARALLEL, REPEAT, REPEATS_MAX
from laststand.emulator.core.client.settings import CONSUMER_PROPERTIES, MEMBER_PROPERTIES, PRODUCER_PROPERTIES
from laststand.emulator.core.eras import ALL_ERAS, ZOOKEEPER_RULES
from laststand.emulator.core.promises import OUTCOME_CHECKS
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import LeaderRecoveryState
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.plan import actions
from laststand.emulator.plan.administration_fields import TopicSpec
from laststand.emulator.plan.names import ALL
from laststand.emulator.plan.nodes import CONTROLLER_COUNTS, STANDBY_CONTROLLERS_MAX
from laststand.emulator.plan.path_words import PATH_WORD
from laststand.emulator.plan.steps import BINDING, VERBS
from laststand.emulator.verification.verdict.requested import ACKS_COMPARISON

Schema: TypeAlias = dict[str, Any]

FILE_NAME: Final = "scenario.schema.json"

_FLAGS: Final = {"on": True, "off": False}
_ANY: Final[Schema] = {}
_TEXT: Final[Schema] = {"type": "string"}


def scenario_schema() -> Schema:
    """Returns the schema (JSON Schema, draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario of Laststand",
        **_mapping(
            {
                "name": {**_TEXT, "pattern": f"^{PATH_WORD}(/{PATH_WORD})*$"},
                "title": {**_TEXT, "minLength": 1, "maxLength": TITLE_LENGTH_MAX},
                "source": _TEXT,
                "cluster": _mapping(
                    {
                        "brokers": _whole(1, BROKERS_MAX),
                        "controllers": {"enum": [*CONTROLLER_COUNTS]},
                        "standby_controllers": _whole(0, STANDBY_CONTROLLERS_MAX),
                        "combined": {"type": "boolean"},
                        PROPERTY: _ANY,
                        "properties": {"type": "object"},
                        KAFKA_CLIENTS: {"oneOf": [_list(_TEXT), {"type": "object", "additionalProperties": _TEXT}]},
                    },
                    required=("brokers",),
                ),
                "topics": _list(_topic()),
                "workload": _mapping(
                    {
                        "producers": _list(_producer()),
                        "consumers": _list(_consumer()),
                        "transactions": _transactions(),
                        "groups": _list(_group()),
                    },
                    required=("producers",),
                ),
                "steps": {**_list(_step()), "minItems": 1},
                "end": _enum(each.value for each in Ending),
                "missed_step": _enum(each.value for each in MissedStep),
                "seed": _whole(0),
                "requires": _mapping({**dict.fromkeys(RULES, _ANY), ERAS_KEY: _list(_enum(ALL_ERAS))}),
                "expect": {
                    **_mapping({era: _expectation() for era in ALL_ERAS}),
                    "patternProperties": {"^[a-z0-9.-]+ with .+=": _expectation()},
                },
                "report": _enum((ACKS_COMPARISON,)),
                "era": _enum(ALL_ERAS),
                "switches": _mapping(dict.fromkeys((*Switches.__struct_fields__, *ZOOKEEPER_RULES, PROPERTY), _ANY)),
            },
            required=("name", "cluster", "topics", "workload", "steps"),
        ),
    }


def _topic() -> Schema:
    known = {
        "name": _TEXT,
        "replicas": _list(_list(_whole(0))),
        "partitions": _whole(1),
        "replication_factor": _whole(1),
    }
    return {**_mapping(known, required=("name",)), "additionalProperties": True}


def _producer() -> Schema:
    known = {
        "name": {**_TEXT, "pattern": "^[a-z0-9-]{1,64}$"},
        "acks": _enum([*ACKS, *(int(text) for text in ACKS if text.lstrip("-").isdecimal())]),
        "rate": _whole(0, 1_000_000),
        "topics": _list(_TEXT),
        "record.size": _whole(32, 1_000_000),
    }
    return _mapping({**known, **dict.fromkeys(PRODUCER_PROPERTIES, _ANY)}, required=("acks", "rate"))


def _consumer() -> Schema:
    return _mapping({"topics": _list(_TEXT), **dict.fromkeys(CONSUMER_PROPERTIES, _ANY)})


def _transactions() -> Schema:
    known = {
        "partitions": _whole(1),
        "size": _whole(1, 10_000),
        "abort_every": _whole(0),
        "rate": _whole(1, 50),
    }
    return _mapping(known, required=("partitions", "size"))


def _group() -> Schema:
    known = {
        "group": _TEXT,
        "members": _whole(0, 100),
        "kind": _enum(each.value for each in actions.MemberKind),
    }
    return _mapping({**known, **dict.fromkeys(MEMBER_PROPERTIES, _ANY)}, required=("group", "members"))


def _expectation() -> Schema:
    return _mapping(
        {
            "verdict": _enum(each.value for each in VerdictName),
            "guarantee": _enum(("broken", "exceeded")),
            "checks": _list(_enum(OUTCOME_CHECKS)),
            "lost": {"type": ["integer", "string"]},
            "lost_acks_1": {"type": ["integer", "string"]},
            "unavailable": _TEXT,
            "p99_ack": _TEXT,
        },
        required=("verdict",),
    )


def _step() -> Schema:
    verbs = {verb: _action([row for row in actions.ACTION_SPECS.values() if row.verb == verb]) for verb in VERBS}
    nested = _list({"type": "object", "minProperties": 1, "maxProperties": 1})
    more = {
        ANY: _mapping({"of": _list(_until()), "within": _ANY}, required=("of",)),
        REPEAT: _mapping({"times": _whole(1, REPEATS_MAX), "steps": nested}, required=("times", "steps")),
        EVERY: _mapping({"period": _TEXT, "for": _TEXT, "do": nested}, required=("period", "for", "do")),
        PARALLEL: nested,
    }
    return {**_mapping({"until": _until(), **more, **verbs}), "minProperties": 1, "maxProperties": 1}


def _until() -> Schema:
    known: dict[str, Schema] = {
        **dict.fromkeys(CONDITION_KEYS, _ANY),
        "acks": _producer()["properties"]["acks"],
        "per": _enum(each.value for each in conditions.CountPer),
        "since": _enum(each.value for each in conditions.Since),
        "leader_recovery_state": _enum(each.name for each in LeaderRecoveryState),
    }
    return {**_mapping(known), "anyOf": [{"required": [subject]} for subject in SUBJECTS]}


def _action(rows: Sequence[actions.ActionSpec]) -> Schema:
    """Returns the schema of a verb's value; several actions may share a verb."""
    known: dict[str, Schema] = {}
    for row in rows:
        for field in row.fields.values():
            options = {option.key.replace("-", "_"): option for option in getattr(field, "options", ())}
            for key in field.keys:
                option = options.get(key)
                known[key] = {} if option is None else {"description": option.help}
                if option is not None and option.choices:
                    known[key] |= _enum(option.choices)
    if "node" in known:
        known[BINDING] = {**_TEXT, "description": "What later steps call the node."}
    is_open = any(isinstance(field, TopicSpec) for row in rows for field in row.fields.values())
    schema: Schema = {**_mapping(known), "additionalProperties": is_open}
    described = {"description": " / ".join(row.meaning for row in rows)}
    if any(not row.fields for row in rows):
        return {**described, "anyOf": [_enum((ALL,)), schema]}
    return {**described, **schema}


def _mapping(properties: Mapping[str, Schema], *, required: Sequence[str] = ()) -> Schema:
    schema: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _enum(values: Iterable[str | int]) -> Schema:
    """Returns a schema of these values; to YAML ``on`` and ``off`` are true and false."""
    listed = list(values)
    return {"enum": [*listed, *(value for word, value in _FLAGS.items() if word in listed)]}


def _whole(low: int, high: int | None = None) -> Schema:
    return {"type": "integer", "minimum": low, **({} if high is None else {"maximum": high})}

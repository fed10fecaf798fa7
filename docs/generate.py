"""Writes the pages of docs/, and the published schemas, that follow from the program: ``make docs``.

Each page is a function without arguments; a test calls them and compares, so that no page can fall behind the code.
"""

import inspect
import itertools
import json
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec

from docs.portable import catalogue_page
from docs.rule_tables import eras_page, table, zookeeper_eras_page
from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.scenario_file import BROKERS_MAX, DEFAULT_RECORD_SIZE, scenario_names
from laststand.emulator.analysis.catalogue import ALL_EVENTS, EVENT_TABLES, FILLED, own_columns
from laststand.emulator.analysis.schema import Column, columns_of
from laststand.emulator.analysis.tables import TABLES_VERSION, Envelope, EventRow, Identity, Moment
from laststand.emulator.autopsy.autopsy_schema import AUTOPSY_SCHEMA_FILE, autopsy_schema_text
from laststand.emulator.core import admin_messages, packed
from laststand.emulator.core.client.settings import (
    CONSUMER_PROPERTIES,
    PRODUCER_PROPERTIES,
    consumer_settings,
    producer_settings,
)
from laststand.emulator.core.controller.unclean_config import STRATEGY
from laststand.emulator.core.effective_config import NODE_PROPERTY_OF
from laststand.emulator.core.packed import layout as packed_layout
from laststand.emulator.core.promises import PROMISES, JudgedBy, Keeper, PromiseKind
from laststand.emulator.core.properties import NodeProperties, StoredTopicProperties, TopicProperties, property_texts
from laststand.emulator.core.property_text import allowed_values
from laststand.emulator.core.struct_docs import field_meanings, first_paragraph
from laststand.emulator.core.struct_schema import enums_of, structs_of
from laststand.emulator.core.switches import ERAS
from laststand.emulator.core.types import Acks, RecoveryStrategy, TopicPartition
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.plan import actions, external_refusals, kafka_refusals
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.fields import AnyField
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.nodes import STANDBY_CONTROLLERS_MAX
from laststand.emulator.plan.steps import VERBS
from laststand.emulator.plan.yaml_cursor import ScenarioError, open_document
from laststand.emulator.verification.rules.checks import CHECKS
from laststand.emulator.verification.schemas import (
    SCHEMA_FILE,
    STORY_SCHEMA_FILE,
    schema_text,
    story_schema_text,
)
from laststand.emulator.verification.story.run import STORY_VERSION, RunStory
from laststand.emulator.verification.verdict.report import VERSION, VerdictReport

DOCS: Final = Path(__file__).parent
FINDINGS: Final = DOCS / "findings.json"
"""By id of a check, one of its findings. ``pytest tests/verification/test_checks.py --rewrite`` writes it."""

EVIDENCE: Final = DOCS / "evidence.json"
"""By id of a check, a constructed run that breaks it, and the fewest checks that such a run breaks beside it. Written
with the findings."""

_GENERATED: Final = "<!-- Written by `make docs`. -->\n"


def _prose(text: str) -> str:
    """Returns a paragraph, broken into lines as the other pages are."""
    return textwrap.fill(text, width=118, break_long_words=False, break_on_hyphens=False) + "\n"


def _code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


# --- Checks -------------------------------------------------------------------------------------------------------

_KINDS: Final = {
    PromiseKind.OUTCOME: "Outcomes: what users see. Judged in every era",
    PromiseKind.CANDIDATE: "Candidates: what an electable replica holds",
    PromiseKind.RULE: "Rules of the protocol. Judged where the era promises them",
    PromiseKind.LIVENESS: "Liveness: what a cluster comes to",
    PromiseKind.CRASH: "Crashes",
}
_JUDGED: Final = {
    JudgedBy.BOTH: "both",
    JudgedBy.SIMULATOR: "the simulator's only",
    JudgedBy.VERIFICATION: "`laststand verify` only",
}


def checks_page() -> str:
    """Returns the catalogue of checks: statement, source, conditions, and an example of a finding."""
    findings = json.loads(FINDINGS.read_text(encoding="utf-8"))
    evidence = json.loads(EVIDENCE.read_text(encoding="utf-8"))
    modules = _check_modules()
    parts = [
        _GENERATED,
        "# The checks\n\n",
        _prose(
            "Every promise that is judged, by the id under which reports list it. Two oracles judge them "
            "independently: "
            "the simulator's, while a schedule is played, and `laststand verify`, from what a run left on disk. A "
            "check is "
            "`ok`, `violated`, `exempt` (it found only cases that its promise excludes), `unknown` (evidence is "
            "missing: [unknown.md](unknown.md)), `not asked` (nothing happened that the check could examine), or "
            "`not promised` (the era lacks the rule: [eras.md](eras.md))."
        ),
        "\n",
        _prose(
            "What a promise *does not ask for* is listed in one table that both oracles read "
            "(`emulator/core/promises.py`); neither oracle excludes anything else. A verdict names each such "
            "finding, its number and the reason (`exempted`); only records that were deleted on purpose are no finding "
            "at all. The simulator's oracle excludes deleted topics, killed processes and acks=1 by construction: it "
            "forgets what a topic promised when the topic is deleted, it sees everything that each process does, and "
            "it records only acknowledgements with acks=all. The guarantee ([verdict.md](verdict.md)) answers another "
            "question: whether too much was broken for a promise to count."
        ),
        "\n",
        _prose(
            "*Evidence* is a run that was written down by hand, in `tests/verification/test_checks.py`, for "
            "`laststand verify` to find what is wrong with it: these checks, and no others. Each check has a run that "
            "breaks it alone, or it is redundant: its entry says which other check finds all that it finds, and what "
            "it is kept for. The evidence of a check that only the simulator judges is a test of the simulator."
        ),
    ]
    for kind, heading in _KINDS.items():
        parts.append(f"\n## {heading}\n")
        for check_id, promise in PROMISES.items():
            if promise.kind is kind:
                parts.append(_check_entry(check_id, modules.get(check_id), findings.get(check_id)))
                parts.append(_evidence_line(evidence.get(check_id)))
    return "".join(parts)


def _check_modules() -> dict[str, str]:
    """Returns the docstring of each check's module by id."""
    return {check.check_id: inspect.getdoc(inspect.getmodule(check.find)) or "" for check in CHECKS}


def _check_entry(check_id: str, documentation: str | None, finding: str | None) -> str:
    promise = PROMISES[check_id]
    lines = [f"\n### {check_id}\n\n{promise.statement}\n\n"]
    if documentation is not None:
        what, _, more = documentation.partition("\n\n")
        lines.append(f"- `verify`: {_one_line(what.partition(' ')[2])}\n")
        lines += [f"  {_one_line(paragraph)}\n" for paragraph in more.split("\n\n") if paragraph]
    check = next((each for each in CHECKS if each.check_id == check_id), None)
    if check is not None:
        lines.append(f"- Source: {check.source}.\n")
        lines.append(f"- Not asked where {'; or '.join(sorted(each.value for each in check.premises))}.\n")
        if check.is_of_clients:
            lines.append("- Also asked of clusters where only clients give evidence.\n")
        if check.needs:
            lines.append(
                f"- Unknown where one of these is not whole: {', '.join(sorted(n.value for n in check.needs))}.\n"
            )
    if promise.switches:
        conditions_text = ", ".join(f"`{name}={'|'.join(values)}`" for name, values in promise.switches.items())
        lines.append(f"- Promised with {conditions_text}.\n")
    if promise.switches and promise.keeper is not Keeper.CLUSTER:
        lines.append(f"- In a cluster of several eras these are the rules of {promise.keeper.value}.\n")
    if promise.exempts:
        lines.append(f"- Does not ask for {'; '.join(each.value for each in promise.exempts)}.\n")
    lines.append(f"- Oracles: {_JUDGED[promise.judged_by]}.\n")
    if finding is not None:
        lines.append(f"- A finding: *{finding}*\n")
    return "".join(lines)


def _evidence_line(evidence: dict[str, Any] | None) -> str:
    if evidence is None:
        return "- Evidence: a test in `tests/unit/simulator` breaks this check alone.\n"
    run, beside = evidence["run"], evidence["beside"]
    if not beside:
        return f"- Evidence: the constructed run *{run}* breaks this check alone.\n"
    other, why, kept_for = (evidence["redundant"][key] for key in ("implied", "why", "kept_for"))
    return (
        f"- Evidence: it is redundant in `verify`: what breaks it breaks {other}, too, because {why}. The constructed "
        f"run *{run}* breaks {' and '.join(beside)} beside it. It is kept because {kept_for}.\n"
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- Scenarios ----------------------------------------------------------------------------------------------------

TOP_KEYS: Final = (
    (
        "name",
        "text",
        "required",
        "Path of the run's folder in the store: letters, digits, `.`, `_` and `-` between the `/`.",
    ),
    ("title", "text", "", "What the scenario shows, as one line of `laststand scenarios`."),
    ("source", "text", "", "Where the story comes from, as text for readers."),
    ("cluster", "mapping", "required", "See below."),
    (
        "topics",
        "list",
        "required",
        "Topics that exist before the first step. The list may be empty if a step creates a topic.",
    ),
    ("workload", "mapping", "required", "See below."),
    ("steps", "list", "required", "At least one, each with one verb."),
    (
        "end",
        "`restore`, `as_is`",
        "`restore`",
        "Whether all faults are mended before the final read, and the cluster has time to settle.",
    ),
    (
        "requires",
        "rules, `eras`",
        "nothing",
        "Rules and eras under which the scenario can be played: `{elr: on}`, `{eras: [kafka-4.2, kip-966]}`; a list "
        "allows several values of a rule. Under others it is refused, and shown as *not playable* in a matrix. A "
        "barrier that names members of an ELR requires `elr: on` without being listed here.",
    ),
    (
        "missed_step",
        "`problem`, `end`",
        "`problem`",
        "What happens after a barrier that is not reached, or an answer that is not allowed. `problem`: the later "
        "steps are skipped, and the verdict is `unknown` at best. `end`: the later steps are skipped, the steps that "
        "were played are judged, and a `hold` for which no message arrives raises no doubt either.",
    ),
    (
        "seed",
        "whole number",
        "drawn",
        "The seed of random choices. `--seed` takes precedence. A recorded plan contains it.",
    ),
    ("expect", "mapping", "", "The expected result in each era. See below."),
    ("report", "`acks-comparison`", "", "What is printed in addition to the verdict."),
    ("era", "era", "", "In a recorded plan: the era whose rules were in force."),
    ("switches", "mapping", "", "In a recorded plan: rules that differed from the era's."),
)
CLUSTER_KEYS: Final = (
    ("brokers", f"whole number, 1 to {BROKERS_MAX}", "required", "Ids are 0 to N-1."),
    (
        "controllers",
        "1, 3 or 5",
        "1",
        "Ids are 100, 101 and so on. Several controllers are a [quorum](quorum.md).",
    ),
    (
        "standby_controllers",
        f"whole number, 0 to {STANDBY_CONTROLLERS_MAX}",
        "0",
        "The number of additional controllers, with the next ids. They are down, and no voters, until steps start "
        "and add them (`add_voter`).",
    ),
    (
        "combined",
        "`true` or `false`",
        "`false`",
        "Whether controller 100 shares a process with broker 0, 101 with 1, and so on: "
        "[combined mode](quorum.md#combined-mode).",
    ),
    ("properties", "mapping", "", "[Properties](properties.md) of every node."),
    (
        "kafka_clients",
        "list of names, or mapping of names to commands",
        "",
        "[Clients of Kafka](clients.md) with links of their own, which steps name as the source of a link. A command "
        "is started once the topics are there, with its addresses in `BOOTSTRAP_SERVERS`, and is asked to end "
        "(SIGTERM) after the steps; one that fails is a problem of the run. Processes that it leaves running are "
        "killed when it ends. With an empty command you start the client yourself. Commands run under your account: "
        "[security](security.md#addresses-files-and-processes).",
    ),
    (
        PROPERTY,
        "version, `2.7,0:2.6` for another one of broker 0",
        "the era's",
        "In eras with ZooKeeper: the protocol version that brokers speak. `--set` takes precedence, and a `start` "
        "step may change it.",
    ),
)
TOPIC_KEYS: Final = (
    ("name", "text", "required", "Letters, digits, `.`, `_` and `-`."),
    (
        "replicas",
        "list of lists of broker ids",
        "required without the next two",
        "One list per partition, the preferred leader first.",
    ),
    ("partitions", "whole number", "1", "Instead of `replicas`: how many partitions."),
    ("replication_factor", "whole number", "1", "Instead of `replicas`: how many replicas each of them has."),
    ("*any other*", "text", "", "A topic [property](properties.md)."),
)
WORKLOAD_KEYS: Final = (
    ("producers", "list of mappings", "required", "May be empty."),
    ("consumers", "list of mappings", "none", "Each reads every partition of its topics, from the beginning."),
    (
        "transactions",
        "mapping",
        "none",
        "Transactions one after the other, with a batch of `size` records in each of `partitions` partitions, which "
        "take turns; each `abort_every`-th (0: none) is aborted, `rate` (10) of them per second. Needs a topic "
        "`__transaction_state`.",
    ),
    (
        "groups",
        "list of mappings",
        "none",
        "Consumer groups, each with `group` (its name), `members` (how many are there from the start), `kind` "
        "(`dynamic` or `static`) and Kafka's `session.timeout.ms`, `heartbeat.interval.ms` and `max.poll.interval.ms`; "
        "steps `member` start, stop and change members. Needs a topic `__consumer_offsets`.",
    ),
)
PRODUCER_KEYS: Final = (
    (
        "name",
        "lower-case letters, digits, `-`",
        "`producer-N`",
        "The name of the producer in steps and in the history.",
    ),
    ("acks", "`all`, `-1`, `1`, `0`", "required", "The acknowledgement that a send waits for."),
    (
        "rate",
        "whole number, 0 to 1000000",
        "required",
        "Records per second. With 0 the producer sends only the records that `produce` steps ask for.",
    ),
    (
        "topics",
        "list of topics",
        "those above; if there are none, those that steps create",
        "Topics to which the producer writes, to each partition in turn. It writes to a topic that a step creates "
        "once it has the topic's metadata.",
    ),
    ("record.size", "whole number, 32 to 1000000", str(DEFAULT_RECORD_SIZE), "Bytes of a record's value."),
    *((name, "Kafka's", "", "A producer [property](properties.md).") for name in sorted(PRODUCER_PROPERTIES)),
)
CONSUMER_KEYS: Final = (
    ("topics", "list of topics", "as for a producer", "Topics that the consumer reads."),
    *((name, "Kafka's", "", "A consumer [property](properties.md).") for name in sorted(CONSUMER_PROPERTIES)),
)
EXPECTATION_KEYS: Final = (
    (
        "verdict",
        "`valid`, `violation`, `unknown`, `valid_or_exceeded`",
        "required",
        "The expected verdict of the run. `valid_or_exceeded` accepts `valid`, and a `violation` that consists only of "
        "losses outside of the guarantee.",
    ),
    (
        "guarantee",
        "`broken`, `exceeded`",
        "",
        "With `violation`: whether the protocol's promise covered the loss of acks=all records. If none is lost: "
        "whether it covered the loss of committed records with any acks (D2, D5, D15), or the records that a consumer "
        "missed (C4).",
    ),
    ("checks", "list of ids", "", "With `violation`: [outcome checks](checks.md) that must be violated."),
    ("lost", "number, or one after `==` `>=` `<=` `>` `<`", "", "The number of acks=all records that must be lost."),
    ("lost_acks_1", "likewise", "", "The number of acks=1 records that must be lost."),
    (
        "unavailable",
        'duration after a comparison, such as `"<=2s"`',
        "",
        "The longest time that any producer waited for an acknowledgement of any partition "
        "([availability](verdict.md#workloadavailability)).",
    ),
    (
        "p99_ack",
        'duration after a comparison, such as `"<=300ms"`',
        "",
        "The time within which 99 of 100 batches were acknowledged, in the slowest partition and kind of acks.",
    ),
)
CONDITIONS: Final[Mapping[type, tuple[str, str, str]]] = {
    conditions.Acked: (
        "acked: 500",
        "`acks` (any); `per`: `total` or `partition` (`total`); `since`: `step` or `run` (`step`); `partition` (all)",
        "That many records were acknowledged.",
    ),
    conditions.Consumed: ("consumed: 100", "", "That many records reached consumers since the step began."),
    conditions.PartitionIs: (
        "partition: orders-0, leader: 1",
        "at least one of `leader`, `isr`, `elr`, `last_known_elr`, `last_known_leader`, `replicas`, `adding_replicas`, "
        "`removing_replicas`, `leader_recovery_state`",
        "The committed state of the partition. Members are compared as sets, and `leader: none` means no leader. "
        "`partition: all` means every partition.",
    ),
    conditions.BrokerIs: ("node: 2, unfenced: true", "or `fenced`", "Whether the controller has fenced the broker."),
    conditions.RegistrationIs: (
        "node: 2, registered: false",
        "",
        "Whether the broker is registered at the controller.",
    ),
    conditions.LogIs: (
        "node: 2, log: orders-0, exists: false",
        "",
        "Whether a node's log directory has a log under that name, whatever its topic id.",
    ),
    conditions.LogEnds: (
        "node: 2, log: orders-0, end: 12",
        "",
        "The end of a node's log, synced or not.",
    ),
    conditions.TopicIs: ("topic: orders, exists: false", "", "Whether a topic exists."),
    conditions.FeatureIs: (
        "feature: eligible.leader.replicas.version, level: 1",
        "",
        "The finalized level of a feature; 0 if there is none.",
    ),
    conditions.ClientSaw: (
        "error: NOT_LEADER_OR_FOLLOWER",
        "`count` (1)",
        "Producers and consumers got that error `count` times since the step began.",
    ),
    conditions.Elapsed: (
        "elapsed: 2 s",
        "",
        "That much time has passed since the step began. A recorded plan has this in place of `every`.",
    ),
    conditions.Intercepted: (
        "intercepted: 1, requests: Fetch, from: 1, to: 0",
        "or `responses`",
        "Faults have held, lost, duplicated or delayed that many messages of this kind since the run began.",
    ),
}
"""By kind of condition: an example, more keys with their defaults, and the meaning."""

_KEYS_HEADER: Final = ("Key", "Value", "Default", "Meaning")


def scenarios_page() -> str:
    """Returns the reference of scenario files: every key of every mapping, and every step."""
    return "".join(
        (
            _GENERATED,
            "# Scenario reference\n\n",
            _prose(
                "Every key of a scenario file. [chaos/README.md](../chaos/README.md) has an example of each, and "
                "lists the "
                f"{len(scenario_names())} scenarios that come along. Times are written with a unit: `40 ms`, `2 s`, "
                "`1 min`."
            ),
            "\n## The file\n\n",
            _keys(TOP_KEYS),
            "\n### cluster\n\n",
            _keys(CLUSTER_KEYS),
            "\n### topics\n\n",
            _keys(TOPIC_KEYS),
            "\n### workload\n\n",
            _keys(WORKLOAD_KEYS),
            "\nA producer:\n\n",
            _keys(PRODUCER_KEYS),
            "\nA consumer:\n\n",
            _keys(CONSUMER_KEYS),
            f"\n### expect\n\nBy era ({', '.join(map(_code, ERAS))}):\n\n",
            _keys(EXPECTATION_KEYS),
            "\n## Waiting: until\n\n",
            _prose(
                "A step `- until: {acked: 500, acks: all, within: 45 s}` waits; "
                f"`within` is {conditions.DEFAULT_WITHIN_MS // 1000} s if not given. A barrier that is not reached "
                f"ends the steps, and the verdict is `unknown`, unless `missed_step` says otherwise."
            ),
            "\n",
            table(
                ("Waits for", "Also", "Meaning"),
                ((_code(f"{{{example}}}"), more, meaning) for example, more, meaning in CONDITIONS.values()),
            ),
            "\n",
            _prose(
                "`- wait_for_any: {of: [{node: 1, fenced: true}, {consumed: 100}], within: 10 s}` waits until one of "
                "several conditions holds. `- repeat: {times: 3, steps: [...]}` plays steps so often; groups are drawn "
                "anew each time. `- every: {period: 2 s, for: 10 s, do: [...]}` does so five times, each two seconds "
                "after the one before, or as soon as that is done; none is begun once ten seconds have passed since "
                "the first. `- parallel: [{kill: {node: 1}}, {cut: {from: 0, to: 2}}]` begins several actions at once; "
                "barriers have no place in it, and a recorded plan has its "
                "actions one after the other."
            ),
            "\n## Doing\n\n",
            _prose(
                "A node is an id, `controller` (100), `active-controller`, a role (`leader(orders-0)`, "
                "`follower(orders-0)`, `last-isr(orders-0)`, "
                "`elr(orders-0)`), or a name that an earlier step gave its node with `as: NAME`. Groups stand in its "
                "place: `any: 2` of the brokers that run (for `start`: that do not), `random: 1 of isr(orders-0)` (or "
                "of `elr`, `replicas`, `followers`, `brokers`), `rack: a`. Elsewhere, as at an end of a link, they are "
                "written `any(1)`, `random(1 of isr)`, `rack(a)`. What is drawn depends on the run's seed, and "
                "`plan.yaml` has its ids."
            ),
            *(_verb(verb) for verb in VERBS),
        )
    )


def _keys(rows: Iterable[tuple[str, str, str, str]]) -> str:
    return table(_KEYS_HEADER, ((_code(key) if "*" not in key else key, *rest) for key, *rest in rows))


def _refusal(row: actions.ActionSpec, driver: DriverName) -> str | None:
    """Returns why a driver never has an action."""
    if driver is DriverName.KAFKA:
        return kafka_refusals.refused_kind(row.kind) or row.refused.get(DriverName.PROCESS)
    if driver is DriverName.EXTERNAL:
        return external_refusals.refused_kind(row.kind)
    return row.refused.get(driver)


def _verb(verb: str) -> str:
    rows = [row for row in actions.ACTION_SPECS.values() if row.verb == verb]
    parts = [f"\n### {verb}\n"]
    for row in rows:
        refused = {driver: reason for driver in DriverName if (reason := _refusal(row, driver)) is not None}
        drivers = [each.value for each in DriverName if each not in refused]
        reasons = itertools.groupby(refused.items(), key=lambda refusal: refusal[1])
        why = "; ".join(
            f"not on {', '.join(driver.value for driver, _ in refusals)}: {reason}" for reason, refusals in reasons
        )
        example = f" In a line of a plan: `{row.example}`." if row.line_verb else ""
        parts.append(f"\n{row.meaning}{example} Drivers: {', '.join(drivers)}{f' ({why})' if why else ''}.\n")
        if row.fields:
            parts += ["\n", table(_KEYS_HEADER, (cells for each in row.fields.values() for cells in _arguments(each)))]
    return "".join(parts)


def _arguments(field: AnyField) -> Iterable[tuple[str, str, str, str]]:
    """Yields a row per key of a field, or one for all where they only make sense together."""
    options = {option.key.replace("-", "_"): option for option in getattr(field, "options", ())}
    default = "required" if field.is_required else _default(field)
    if not options:
        value, meaning = SUBJECTS[type(field).__name__]
        yield ", ".join(map(_code, field.keys)), value, default, meaning
        return
    for key in field.keys:
        option = options.get(key.replace(".", "_"))
        if option is not None:
            value = ", ".join(map(_code, option.choices)) or SUBJECTS.get(type(field).__name__, ("", ""))[0]
            yield _code(key), value, default, option.help
        else:
            yield (_code(key), *_LOSS_KEYS[key])


_LOSS_KEYS: Final = {
    "kept": ("whole number", "drawn", "How many batches of what was not synced stay."),
    "truncation": ("`kept`, `undone`", "drawn", "What becomes of truncations that were not synced."),
    "names": ("`kept`, `undone`", "drawn", "What becomes of files that were made, renamed or removed and not synced."),
}

SUBJECTS: Final[Mapping[str, tuple[str, str]]] = {
    "Nodes": ("node; list of nodes; a group", "Which nodes, at the same moment."),
    "Principals": ("node or `client`; list of them; a group", "Whose permissions, at the same moment."),
    "TopicOption": ("topic", ""),
    "Disks": (
        "node; list of nodes; a group",
        "Which brokers, or controllers where there are several, at the same moment.",
    ),
    "Brokers": ("broker; list of brokers; a group", "Which brokers, at the same moment."),
    "Ends": ("nodes; `from` may be `client`", "The link by which one dials the other."),
    "Arrow": ("`0 -> 1`; `client -> 1`", "The link by which the first dials the second."),
    "Messages": ("kinds of messages; nodes", "Which messages of a link: requests that go there, or responses to them."),
    "PartitionOption": ("partition, such as `orders-0`", "Which partition."),
    "OptionalPartition": ("partition, such as `orders-0`", "Which partition."),
    "GroupOption": ("group", ""),
    "PartitionField": ("partition, such as `orders-0`", "Which partition."),
    "PartitionList": ("list of partitions", "Which partitions, in this order."),
    "PartitionSet": ("partition, or `all`", "Which partitions."),
    "TopicField": ("topic", "Which topic, also one that was there before."),
    "TopicSpec": ("as in `topics` above", "The topic; every other key is a property of it."),
    "Producer": ("producer", ""),
    "Whole": ("whole number", ""),
    "OptionalWhole": ("whole number", ""),
    "Number": ("whole number", ""),
    "Duration": ("time", ""),
    "Span": ("time", ""),
    "ProtocolVersion": ("release, or one of its versions", ""),
    "LossField": ("whole number", ""),
    "OptionalLoss": ("whole number", ""),
    "Replicas": ("list of broker ids", "Of the partition, the preferred leader first."),
    "RequiredBrokerId": ("broker id", "Which broker."),
    "ControllerField": ("controller", "Which of several controllers: an id, a role or a name."),
    "OptionalBrokerId": ("broker id", "Which broker, where the election takes one by name."),
    "Answers": (
        "name of an error; list of them",
        "Answers that will do; without it only `NONE` does.",
    ),
    "DeletionOffset": ("whole number", "Records below it go; -1 is the high watermark."),
    "ElectionField": (
        ", ".join(_code(each.name.lower()) for each in admin_messages.RequestedElection),
        "Which kind of election.",
    ),
    "ConfigChangeField": (
        "name; id; `default`; mapping; list",
        "One of `topic`, `broker` and `cluster: default`, with `set` or `delete` or both.",
    ),
    "FeatureLevelField": ("name; level", "A number, or a release where the feature is `metadata.version`."),
}
"""By class of a field, its values, and what it means where it has no help of its own."""


def _default(field: AnyField) -> str:
    """Returns what a step means that leaves a field out, as a step would write it."""
    names = Names(brokers=BROKERS_MAX, partitions=(TopicPartition("orders", 0),))
    with open_document(Path("step"), "{}").fields() as fields:
        value = field.read(fields, names)
    return _code(value.value if isinstance(value, Enum) else str(value).lower()) if _is_plain(value) else ""


def _is_plain(value: object) -> bool:
    return isinstance(value, Enum | bool | int | str) and value != ""


def allowed_keys(text: str, read: Callable[[Path, str], object]) -> frozenset[str]:
    """Returns the keys that a reader allows where ``text`` has the key ``unheard.of``, by its own complaint."""
    try:
        read(Path("scenario.yaml"), text)
    except ScenarioError as error:
        return frozenset(error.reason.partition("allowed: ")[2].partition(";")[0].split(", "))
    return frozenset()


# --- Properties ---------------------------------------------------------------------------------------------------


def properties_page() -> str:
    """Returns the properties of Kafka that are supported, with defaults and allowed values."""
    defaults = {STRATEGY: RecoveryStrategy.BALANCED.value, **property_texts(NodeProperties())}
    stored = property_texts(StoredTopicProperties())
    producer = producer_settings(Acks.ALL, {})
    consumer = consumer_settings({})
    return "".join(
        (
            _GENERATED,
            "# Properties\n\n",
            _prose(
                "The properties of Kafka that are supported, under Kafka's names and with Kafka's defaults; an "
                "unknown name "
                "is refused, never ignored. Times are ms, sizes bytes. A topic's own value counts before the "
                "cluster's, and "
                "that before the node's."
            ),
            "\n## Nodes\n\n",
            _prose(
                "With `--set` of `run`, `up` and `simulate`, and under `cluster.properties` of a scenario; on a "
                "standing "
                "cluster also with `configs alter --entity-type brokers`. `leader.recovery.min.ms`, "
                "`stray.delete.delay.ms`, `alter.partition.retry.backoff.ms` and `unclean.recovery.retry.backoff.ms` "
                "are ours."
            ),
            "\n",
            _properties(NodeProperties, lambda name: defaults.get(name, "not set")),
            "\n## Topics\n\n",
            _prose(
                "With `--config` of `topics create` and `topics alter`, with `configs alter --entity-type topics`, "
                "and beside "
                "`replicas` of a topic in a scenario. A topic without a value of its own has that of the node's "
                "property."
            ),
            "\n",
            _properties(TopicProperties, _synonym, heading="Without a value"),
            "\n",
            _prose("These are stored and described as in Kafka, and nothing here acts on them:"),
            "\n",
            _properties(StoredTopicProperties, lambda name: stored[name] or "none"),
            "\n## Producers\n\n",
            _prose(
                "With `--producer-property` of `produce`, and in a producer of a scenario. Idempotence is on where "
                "`acks` is "
                "`all`, and off elsewhere."
            ),
            "\n",
            _settings(type(producer), msgspec.to_builtins(producer), sorted(PRODUCER_PROPERTIES)),
            "\n## Consumers\n\nWith `--consumer-property` of `consume`, and in a consumer of a scenario.\n\n",
            _settings(type(consumer), msgspec.to_builtins(consumer), sorted(CONSUMER_PROPERTIES)),
        )
    )


def _properties(struct: type[msgspec.Struct], default: Callable[[str], str], *, heading: str = "Default") -> str:
    rows = []
    for field in struct.__struct_fields__:
        name = field.replace("_", ".")
        rows.append((_code(name), _code(default(name)), allowed_values(struct, field)))
    return table(("Property", heading, "Allowed"), rows)


def _synonym(name: str) -> str:
    return NODE_PROPERTY_OF.get(name, "none")


_FIELDS: Final = {"max.in.flight.requests.per.connection": "max_in_flight"}


def _settings(struct: type[msgspec.Struct], values: Mapping[str, object], names: Iterable[str]) -> str:
    rows = []
    for name in names:
        field = _FIELDS.get(name, name.replace(".", "_"))
        value = values[field]
        text = str(value).lower() if isinstance(value, bool) else str(value)
        rows.append((_code(name), _code(text), allowed_values(struct, field)))
    return table(("Property", "Default", "Allowed"), rows)


# --- Tables -------------------------------------------------------------------------------------------------------


def tables_page() -> str:
    """Returns the tables that runs become: each with its columns, their types, units and meanings."""
    parts = [
        _GENERATED,
        "# The tables of runs\n\n",
        _prose(
            "`laststand.read_runs` and `laststand sql` read any number of run directories into these tables; "
            "[analyses.md](analyses.md) has questions that they answer. In SQL each table is a view of its name; in "
            "Python `runs.faults` is a DataFrame, and so is `runs.events['LogTruncated']`, which SQL calls "
            f"`log_truncated`. This is version {TABLES_VERSION} (`runs.tables_version`): a version gains tables and "
            "columns, and loses none."
        ),
        "\n",
        _prose(
            "A run that cannot be read whole (files are missing, lines are torn or of another version, the run goes "
            "on) is refused. One that is whole and proves nothing, as a fault had no effect, is read; `verdicts` says "
            "so."
        ),
        "\n",
        _prose(
            "`laststand export RUN... DIR --to parquet|json|csv` writes them as files, a folder each. In CSV, a list "
            "or an object is JSON text."
        ),
        "\n## Every row\n\n",
        _columns((*columns_of(Identity), *columns_of(Moment))),
    ]
    for name, (struct, _) in FILLED.items():
        parts += [f"\n## {name}\n\n", _prose(first_paragraph(struct)), "\n", _columns(own_columns(name))]
    parts += [f"\n## {ALL_EVENTS}\n\n", _prose(first_paragraph(EventRow)), "\n", _columns(own_columns(ALL_EVENTS))]
    shared = {column.name for column in (*columns_of(Envelope), *columns_of(EventRow))}
    parts += [
        "\n## Events by type\n\n",
        _prose(
            "A table for each type of event. It has the columns of `events`, as far as they are said to apply, and its "
            "own."
        ),
    ]
    for name, kind in EVENT_TABLES.items():
        own = tuple(column for column in own_columns(name) if column.name not in shared)
        about = "" if "topic" in kind.__struct_fields__ else " Without `topic`, `partition`, `topic_id`."
        parts += [f"\n### {name}\n\n", _prose(first_paragraph(kind) + about)]
        parts += ["\n", _columns(own)] if own else []
    return "".join(parts)


def _columns(columns: Iterable[Column]) -> str:
    rows = ((_code(each.name), _code(each.spark_type), each.unit, each.meaning) for each in columns)
    return table(("Column", "Type", "Unit", "Meaning"), rows)


# --- The verdict --------------------------------------------------------------------------------------------------

LOSS_EXAMPLE: Final = DOCS / "verdict-example.json"
"""A loss of a run of kip-966/last-replica-standing."""


def verdict_page() -> str:
    """Returns the form of ``verdict.json``: its objects with their fields, and what the words in it mean."""
    parts = [
        _GENERATED,
        "# verdict.json\n\n",
        _prose(
            f"What `laststand verify` and `run` write into a run's directory, as JSON. This is version {VERSION} "
            "(`version`): a version gains fields and loses none, so pass over fields that you do not know. "
            "[verdict.schema.json](../emulator/verification/verdict.schema.json) is its JSON Schema; an installed "
            "Laststand has it in `laststand.emulator.verification`. `laststand verify --json` prints a "
            "list of these objects."
        ),
        "\n",
        _prose(
            "A field is `null` if its value is not known, such as `acked_by` if the answer is missing. Epochs, offsets "
            "and node ids are numbers; ranges of offsets include both ends. A line of a story names the events behind "
            "it, by file and `sequence` (the number of the line). This is one entry of `losses`, of "
            "`kip-966/last-replica-standing` in the simulator, without the rest of its story:"
        ),
        f"\n```json\n{LOSS_EXAMPLE.read_text(encoding='utf-8')}```\n",
        "\n## The guarantee\n\n",
        _prose(
            "A loss is `broken` if two conditions hold from the acknowledgement up to the election of the first leader "
            "without the records (if a leader leads again in its own epoch: up to its registration; without such a "
            "leader: up to the end). At most min(min ISR, number of replicas) - 1 replicas were outstanding at once, "
            "and there was no election for which losses had been accepted. Else the loss is `exceeded`. The order is "
            "that of metadata offsets: an acknowledgement has the offset up to which its broker had applied metadata."
        ),
        "\n",
        _prose(
            "A replica is outstanding from the end of a process that did not shut down cleanly, "
            "whether bytes were lost or not, until an ISR that contains it is committed after its new registration. A "
            "process that was stopped before it knew its broker epoch also counts as not shut down cleanly. Losses are "
            "accepted if an administrator asks for an unclean leader, or if the settings of the topic or the cluster "
            "allow one. An election of the last known leader without either of these does not count as accepted."
        ),
        "\n",
        _prose(
            "If only clients give evidence (an external cluster, or one behind a tap), it is not known which replicas "
            "were outstanding. Then a loss is `broken` if the plan broke nothing and asked for no unclean election, "
            "else `not known`."
        ),
    ]
    return "".join([*parts, *_form(VerdictReport)])


def _form(root: type[msgspec.Struct]) -> Iterable[str]:
    """Yields a table for each struct of a file's form, and one of the words in it."""
    for struct in structs_of(root):
        meanings = field_meanings(struct)
        hints = get_type_hints(struct)
        names = zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True)
        rows = ((_code(written), _type_text(hints[name]), meanings[written]) for written, name in names)
        yield f"\n## {struct.__name__}\n\n{_prose(first_paragraph(struct))}\n"
        yield table(("Field", "Type", "Meaning"), rows)
    yield "\n## Words\n\n"
    words = ((kind.__name__, ", ".join(_code(each.value) for each in kind)) for kind in enums_of(root))
    yield table(("Type", "Values"), words)


def story_page() -> str:
    """Returns the form of ``story.json``."""
    return "".join(
        (
            _GENERATED,
            "# story.json\n\n",
            _prose(
                "What `laststand verify` and `run` write beside [verdict.json](verdict.md): what pictures of a run "
                f"need and the verdict does not say. This is version {STORY_VERSION} (`version`): a version "
                "gains fields and loses none. [story.schema.json](../emulator/verification/story.schema.json) is its "
                "JSON Schema."
            ),
            "\n",
            _prose(
                "Times are microseconds since `origin_ns`, by the clocks of the nodes. Curves are thinned: a long one "
                "keeps about a hundred points, even in time and in value. Nothing here is judged: which records are "
                "lost is in `verdict.json`."
            ),
            *_form(RunStory),
        )
    )


# --- Packed files ----------------------------------------------------------------------------------------------------

_CODES: Final = {"q": "int64", "i": "int32", "I": "uint32", "H": "uint16", "h": "int16", "b": "int8", "B": "uint8"}


def packed_files_page() -> str:
    """Returns the form of packed files, and where each field of a packed line stands."""
    idea = inspect.getdoc(packed) or ""
    parts = [
        _GENERATED,
        "# Packed files\n\n",
        _prose(
            "`events/<broker>-<incarnation>.packed`, `history.packed` and `history/<client>.packed` hold lines as "
            "files of JSON lines do, in the same order and under the same numbers, but in a quarter of the bytes. "
            "`laststand events RUN` prints events as JSON lines, with `--history` the histories; `laststand logs NODE "
            "--events` those of a standing cluster. Other processes have few frequent events and write JSON lines, and "
            "so does the simulator. Either form is verified, with one verdict. `grep -a` finds lines that are not "
            f"packed. This is version {packed_layout.VERSION}."
        ),
        "\n",
        _prose(
            "Each process has one file, and not one for each kind of event: so its lines keep one order, one numbering "
            "and one seal, and what a killed process had written last is known. Cells and words cost bytes for that: "
            "an event of a run takes 123 bytes, its share of the history included, where records of one kind in a file "
            "of their own would take some 76. Writing a packed event takes 3.7 µs of CPU, one as a line of JSON 2.4 µs "
            "(`make bench NAME=events`): a quarter of the bytes, and dearer by half in the process that writes it."
        ),
        "\n```\n",
        idea.partition("\n\n")[2].replace("``", "").partition(" Pure:")[0].replace("::\n\n", ""),
        "\n```\n\n",
        _prose(
            "A seal, and the harness's word for a file, are about its lines: how many, without the seal, and the "
            "digest of all bytes before it."
        ),
    ]
    for layout in packed_layout.LAYOUTS.values():
        parts.append(_packed_layout(layout, f"first byte {packed_layout.KINDS[layout.struct]}"))
        if layout.elements is not None:
            name, element = layout.elements
            parts.append(_packed_layout(element, f"each of `{name}`, in cells of its own after the line"))
    return "".join(parts)


def _packed_layout(layout: packed_layout.Layout, what: str) -> str:
    rows = ((each.offset, _CODES[each.code], _code(each.name), each.form.value) for each in layout.fields)
    heading = f"\n## {layout.struct.__name__}\n\n{layout.cells} cells; {what}.\n\n"
    return heading + table(("Byte", "Type", "Field", "Holds"), rows)


_JSON_TYPES: Final = {int: "number", float: "number", str: "text", bool: "true or false"}


def _type_text(hint: object) -> str:
    """Returns how a field's type is called on the page."""
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is tuple:
            return f"list of {_type_text(arguments[0])}"
        case origin if origin is dict:
            return f"{_type_text(arguments[1])} by {_type_text(arguments[0])}"
        case origin if origin is UnionType:
            return " or null".join((_type_text(arguments[0]), ""))
        case _:
            pass
    if not isinstance(hint, type):
        raise TypeError(f"no name for {hint}")
    return _JSON_TYPES.get(hint) or (
        hint.__name__ if issubclass(hint, Enum) else f"[{hint.__name__}](#{hint.__name__.lower()})"
    )


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "checks.md": checks_page,
    "scenarios.md": scenarios_page,
    "properties.md": properties_page,
    "tables.md": tables_page,
    "verdict.md": verdict_page,
    "story.md": story_page,
    "packed-files.md": packed_files_page,
    "catalogue/README.md": catalogue_page,
    "eras.md": eras_page,
    "eras-zookeeper.md": zookeeper_eras_page,
    str(Path(os.path.relpath(SCHEMA_FILE, DOCS))): schema_text,
    str(Path(os.path.relpath(STORY_SCHEMA_FILE, DOCS))): story_schema_text,
    str(Path(os.path.relpath(AUTOPSY_SCHEMA_FILE, DOCS))): autopsy_schema_text,
}
"""By file name, what its content must be."""


def main() -> None:
    """Writes every page."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

"""One notation of actions: a line each, as plans of the simulator are printed, kept and written by hand.

``ACTION_SPECS`` has an example of every line. A verb comes first, then the targets, then ``key=value`` pairs; node 100
is the controller, 1000 stands for the clients. Requests without a form as a line are written like the step of a
scenario.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.metadata_version import ELR_VERSION
from laststand.emulator.core.types import ConfigResource, FeatureUpgradeType, NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.administration_fields import ConfigChange, FeatureLevel
from laststand.emulator.plan.fields import PartitionField, Words
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.nodes import NodeRef
from laststand.emulator.plan.steps import action_text, read_text
from laststand.emulator.plan.yaml_cursor import ScenarioError

MIN_ISR: Final = "min.insync.replicas"

_SHORT_FORMS: Final = ("min-isr orders value=1", "elr-feature level=0", "reassign orders-0 replicas=none")

_BY_LINE_VERB: Final[Mapping[str, actions.ActionSpec]] = MappingProxyType(
    {row.line_verb: row for row in actions.ACTION_SPECS.values() if row.line_verb}
)

LINE_VERBS: Final = (*_BY_LINE_VERB, "min-isr", "elr-feature")
"""First words of lines."""


def format_action(action: actions.Action) -> str:
    """Returns an action's line."""
    match action:
        case actions.AlterConfig(
            config=ConfigChange(resource=ConfigResource.TOPIC, name=name, changes=((key, str() as value),))
        ) if key == MIN_ISR and action == min_isr(name, int(value)):
            return f"min-isr {name} value={value}"
        case actions.UpdateFeature(target=FeatureLevel(feature=feature, level=level)) if (
            feature == ELR_VERSION and action == elr_feature(level)
        ):
            return f"elr-feature level={level}"
        case actions.CancelReassignment(partition=partition) if action == actions.CancelReassignment(
            partition=partition
        ):
            return f"reassign {partition} replicas=none"
        case _:
            pass
    row = actions.spec_of(action)
    if not row.line_verb:
        return action_text(action).removeprefix("{").removesuffix("}")
    words = [word for name, field in row.fields.items() for word in field.format(getattr(action, name))]
    # What stands alone comes first, whatever the order of the fields.
    return " ".join([row.line_verb, *sorted(words, key=lambda word: "=" in word)])


def parse_action(line: str, names: Names | None = None) -> actions.Action:
    """Returns the action of a line.

    Args:
        line: without comment.
        names: the allowed names in a line that is a step; without ``names``, such lines are refused.

    Raises:
        ConfigError: the line is not an action.
    """
    try:
        return actions.with_nodes(_parse(line, names), _known)
    except (ValueError, KeyError):
        raise _complaint(line) from None


def parse_words(row: actions.ActionSpec, words: Words) -> actions.ActionTemplate:
    """Returns the action of a row with some words; nodes may be roles.

    Raises:
        ValueError: the words have another form.
        KeyError: a word is not an allowed one.
    """
    # Fields with words that stand alone take them in the order of the struct: the subject first.
    given = {name: field.parse(words) for name, field in row.fields.items()}
    words.check_empty()
    return row.kind(**given)  # type: ignore[return-value]


def _parse(line: str, names: Names | None) -> actions.ActionTemplate:
    verb, *rest = line.split()
    words = Words(rest)
    match verb:
        case "min-isr":
            action: actions.ActionTemplate = min_isr(words.pop(), int(words.pop_pair("value") or ""))
        case "elr-feature":
            action = elr_feature(int(words.pop_pair("level") or ""))
        case "reassign" if "replicas=none" in rest:
            words.pop_pair("replicas")
            action = actions.CancelReassignment(partition=PartitionField().parse(words))
        case _ if verb in _BY_LINE_VERB:
            action = parse_words(_BY_LINE_VERB[verb], words)
        case _ if verb.endswith(":") and names is not None:
            return _parse_step(line, names)
        case _:
            raise ValueError(line)
    words.check_empty()
    return action


def _parse_step(line: str, names: Names) -> actions.ActionTemplate:
    try:
        return read_text(line, names, path=Path("plan"))
    except ScenarioError as error:
        raise ConfigError(key=line.split(":")[0], value=line, expected=error.reason) from None


def _known(node: NodeRef) -> NodeId:
    if not isinstance(node, int):
        raise ValueError(f"a line names nodes by their ids, not {node}")
    return node


def _complaint(line: str) -> ConfigError:
    verb = line.split()[0] if line.split() else ""
    examples = [row.example for row in actions.ACTION_SPECS.values() if row.line_verb == verb]
    examples += [form for form in _SHORT_FORMS if form.split()[0] == verb]
    if examples:
        return ConfigError(key=verb, value=line, expected=" or ".join(f"a line as '{each}'" for each in examples))
    return ConfigError(key=verb, value=None, expected=f"cluster, topic, or an action: {', '.join(LINE_VERBS)}")


# --- Short forms --------------------------------------------------------------------------------------------------


def min_isr(topic: str, value: int) -> actions.AlterConfig:
    """Returns the request for another ``min.insync.replicas`` of a topic."""
    return actions.AlterConfig(
        config=ConfigChange(resource=ConfigResource.TOPIC, name=topic, changes=((MIN_ISR, str(value)),))
    )


def elr_feature(level: int) -> actions.UpdateFeature:
    """Returns the request for a level of ``eligible.leader.replicas.version``."""
    return actions.UpdateFeature(
        target=FeatureLevel(ELR_VERSION, level),
        upgrade_type=FeatureUpgradeType.UPGRADE if level > 0 else FeatureUpgradeType.SAFE_DOWNGRADE,
    )

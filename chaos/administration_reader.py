"""Reads the steps of a scenario file that ask the controller for something.

    - create_topic: {name: orders, replicas: [[0, 1, 2]], min.insync.replicas: 2}
    - delete_topic: {name: orders}
    - alter_config: {topic: orders, set: {min.insync.replicas: 1}, delete: [retention.ms]}
    - alter_config: {cluster: default, set: {unclean.leader.election.enable: true}}   # or {broker: 1, ...}
    - elect_leaders: {type: designated, partition: orders-0, leader: 2}
    - reassign: {partition: orders-0, replicas: [1, 2, 3]}
    - cancel_reassignment: {partition: orders-0}
    - update_feature: {feature: eligible.leader.replicas.version, level: 1, upgrade_type: UPGRADE}
    - unregister_broker: {node: 2, answer: [NONE, BROKER_ID_NOT_REGISTERED]}

Each may list the answers that it allows, by Kafka's names; without a list only NONE will do.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from chaos.administration import (
    Administration,
    AlterConfig,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    Reassign,
    UnregisterBroker,
    UpdateFeature,
)
from chaos.condition_reader import read_error
from chaos.feature_level import read_level
from chaos.name_reader import NameReader
from chaos.topic_reader import config_reason, read_topic
from chaos.yaml_cursor import Cursor, Fields
from emulator.core.admin_messages import RequestedElection
from emulator.core.errors import ConfigError, ErrorCode
from emulator.core.properties import check_topic_properties, node_properties
from emulator.core.types import ConfigResource, FeatureUpgradeType

Answers = tuple[ErrorCode, ...]


def read_administration(verb: str, fields: Fields, names: NameReader) -> Administration:
    """Returns the step of one of ``ADMINISTRATION_VERBS``.

    Raises:
        ScenarioError: it cannot be asked for.
    """
    answer = fields.optional("answer")
    answers = (ErrorCode.NONE,) if answer is None else tuple(read_error(each) for each in answer.items())
    if answer is not None and not answers:
        answer.fail("allowed: a list of error names, NONE among them where it may succeed")
    return _READERS[verb](fields, names, answers)


def _create_topic(fields: Fields, names: NameReader, answers: Answers) -> CreateTopic:
    topic = read_topic(fields, brokers=names.brokers)
    names.add_topic(topic)
    return CreateTopic(topic=topic, answers=answers)


def _delete_topic(fields: Fields, names: NameReader, answers: Answers) -> DeleteTopic:
    return DeleteTopic(name=names.topic(fields.required("name")), answers=answers)


def _alter_config(fields: Fields, names: NameReader, answers: Answers) -> AlterConfig:
    resource, name = _resource(fields, names)
    setting, deleting = fields.optional("set"), fields.optional("delete")
    if setting is None and deleting is None:
        fields.owner.fail("changes nothing, allowed: set, delete")
    changes: list[tuple[str, str | None]] = []
    if setting is not None:
        with setting.fields() as entries:
            for key, cursor in entries.take_rest():
                _check(resource, key, cursor)
                changes.append((key, cursor.text()))
    changes += [(each.text(), None) for each in (() if deleting is None else deleting.items())]
    return AlterConfig(resource=resource, resource_name=name, changes=tuple(changes), answers=answers)


def _resource(fields: Fields, names: NameReader) -> tuple[ConfigResource, str]:
    topic, broker, cluster = fields.optional("topic"), fields.optional("broker"), fields.optional("cluster")
    match [each for each in (topic, broker, cluster) if each is not None]:
        case [each] if each is topic:
            return ConfigResource.TOPIC, names.topic(each)
        case [each] if each is broker:
            return ConfigResource.BROKER, str(names.broker_id(each))
        case [each]:
            each.choice(("default",))
            return ConfigResource.BROKER, ""
        case _:
            fields.owner.fail("needs one of topic, broker and cluster")


def _check(resource: ConfigResource, key: str, cursor: Cursor) -> None:
    check: Callable[[Mapping[str, str]], object]
    check = check_topic_properties if resource is ConfigResource.TOPIC else node_properties
    try:
        check({key: cursor.text()})
    except ConfigError as error:
        cursor.fail(config_reason(error))


def _elect_leaders(fields: Fields, names: NameReader, answers: Answers) -> ElectLeaders:
    kinds = {each.name.lower(): each for each in RequestedElection}
    election = kinds[fields.required("type").choice(kinds)]
    partitions, leader = names.partition_set(fields.required("partition")), fields.optional("leader")
    if (leader is not None) != (election is RequestedElection.DESIGNATED):
        fields.owner.fail("a designated election, and no other, names its leader")
    broker = None if leader is None else names.broker_id(leader)
    return ElectLeaders(election=election, partitions=partitions, leader=broker, answers=answers)


def _reassign(fields: Fields, names: NameReader, answers: Answers) -> Reassign:
    partition = names.partition(fields.required("partition"))
    return Reassign(partition=partition, replicas=names.replicas(fields.required("replicas")), answers=answers)


def _cancel(fields: Fields, names: NameReader, answers: Answers) -> Reassign:
    return Reassign(partition=names.partition(fields.required("partition")), replicas=None, answers=answers)


def _update_feature(fields: Fields, _: NameReader, answers: Answers) -> UpdateFeature:
    feature, upgrade_type = fields.required("feature").text(), fields.optional("upgrade_type")
    kinds = [each.value for each in FeatureUpgradeType]
    return UpdateFeature(
        feature=feature,
        level=read_level(fields.required("level"), feature),
        upgrade_type=FeatureUpgradeType.UPGRADE
        if upgrade_type is None
        else FeatureUpgradeType(upgrade_type.choice(kinds)),
        answers=answers,
    )


def _unregister(fields: Fields, names: NameReader, answers: Answers) -> UnregisterBroker:
    return UnregisterBroker(broker_id=names.broker_id(fields.required("node")), answers=answers)


_READERS: Final[Mapping[str, Callable[[Fields, NameReader, Answers], Administration]]] = MappingProxyType(
    {
        "create_topic": _create_topic,
        "delete_topic": _delete_topic,
        "alter_config": _alter_config,
        "elect_leaders": _elect_leaders,
        "reassign": _reassign,
        "cancel_reassignment": _cancel,
        "update_feature": _update_feature,
        "unregister_broker": _unregister,
    }
)

ADMINISTRATION_VERBS: Final = tuple(_READERS)
"""Steps that ask the controller."""

"""Random actions: a strategy for each kind of field, so that a new action is drawn without more ado."""

from typing import Any, Final

from hypothesis import strategies as st

from laststand.emulator.core import admin_messages
from laststand.emulator.core.disk import DiskModel, ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.metadata_version import ELR_VERSION
from laststand.emulator.core.types import BrokerId, ConfigResource, NodeId, TopicPartition, Way
from laststand.emulator.plan import actions, fields
from laststand.emulator.plan import administration_fields as admin
from laststand.emulator.plan.administration_fields import ConfigChange, FeatureLevel, TopicSpec
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.fields import AnyField
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.nodes import CLIENT, CONTROLLER
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.plan.topics import PlannedTopic

BROKERS: Final = 4
PARTITIONS: Final = tuple(TopicPartition(topic, index) for topic in ("orders", "re-funds") for index in (0, 1))

_BROKER: Final = st.integers(0, BROKERS - 1).map(lambda number: BrokerId(NodeId(number)))
_NODE: Final = st.one_of(_BROKER, st.just(CONTROLLER))
_LINK: Final = (
    st.tuples(st.one_of(_NODE, st.just(CLIENT)), _NODE)
    .filter(lambda ends: ends[0] != ends[1])
    .map(lambda ends: Link(NodeId(ends[0]), NodeId(ends[1])))
)
_REPLICAS: Final = st.lists(_BROKER, min_size=2, max_size=2, unique=True).map(tuple)
_EXACT: Final = st.builds(
    ExactLoss,
    kept=st.integers(0, 9),
    truncation=st.sampled_from(TruncationFate),
    names=st.sampled_from(NamesFate),
)
_LOSS: Final = st.builds(
    DiskLoss,
    keep=st.sampled_from(Keep),
    exact=_EXACT,
    disk=st.sampled_from([DiskModel.POSIX, DiskModel.BTRFS]),
)
_CHANGES: Final = st.lists(
    st.sampled_from(
        [("min.insync.replicas", "2"), ("retention.ms", "60000"), ("retention.bytes", None), ("flush.messages", None)]
    ),
    min_size=1,
    unique_by=lambda change: change[0],
).map(lambda changes: tuple(sorted(changes, key=lambda change: change[1] is None)))


_PARTITION_SET: Final = st.one_of(st.sampled_from(PARTITIONS).map(lambda each: (each,)), st.just(PARTITIONS))


def _value(field: AnyField) -> st.SearchStrategy[Any]:
    """Returns a strategy for the values of a field; of those that both notations can say."""
    strategies: dict[type, st.SearchStrategy[Any]] = {
        fields.Nodes: st.lists(_NODE, min_size=1, max_size=3, unique=True).map(tuple),
        fields.Principals: st.lists(st.one_of(_NODE, st.just(CLIENT)), min_size=1, max_size=3, unique=True).map(tuple),
        fields.TopicOption: st.sampled_from([None, "orders", "re-funds"]),
        fields.Disks: st.lists(_BROKER, min_size=1, max_size=3, unique=True).map(tuple),
        fields.ControllerField: st.sampled_from([NodeId(100), NodeId(102)]),
        fields.Brokers: st.lists(_BROKER, min_size=1, max_size=3, unique=True).map(tuple),
        fields.Ends: _LINK,
        fields.Arrow: _LINK,
        fields.Messages: st.builds(
            lambda link, api, way: Channel(link.source, link.target, api, way),
            _LINK,
            st.sampled_from(["Fetch", "Stream"]),
            st.sampled_from(Way),
        ),
        fields.PartitionField: st.sampled_from(PARTITIONS),
        fields.PartitionList: st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3, unique=True).map(tuple),
        fields.PartitionOption: st.sampled_from(PARTITIONS),
        fields.OptionalPartition: st.one_of(st.none(), st.sampled_from(PARTITIONS)),
        fields.GroupOption: st.sampled_from(["readers", "a.b_c-1"]),
        fields.TopicField: st.sampled_from(["orders", "re-funds"]),
        fields.ProducerField: st.sampled_from([fields.PRODUCER_ALL, fields.PRODUCER_LEADER]),
        fields.Whole: st.integers(1, 10_000),
        fields.Number: st.integers(0, 100),
        fields.Duration: st.integers(0, 100_000),
        fields.Span: st.integers(0, 100_000),
        fields.OptionalWhole: st.one_of(st.none(), st.integers(1, 9)),
        fields.ProtocolVersion: st.one_of(st.none(), st.sampled_from(["2.6", "2.7-IV2", "3.9"])),
        fields.LossField: _LOSS,
        fields.OptionalLoss: st.one_of(st.none(), _LOSS),
        fields.Answers: st.lists(st.sampled_from(ErrorCode), min_size=1, max_size=2, unique=True).map(tuple),
        fields.NodeEra: st.sampled_from([None, "kafka-3.9", "kip-966,elr=off,truncation=kip101"]),
        fields.KafkaRelease: st.sampled_from([None, "4.2.0"]),
        TopicSpec: st.builds(
            PlannedTopic,
            name=st.sampled_from(["new", "re-funds"]),
            replicas=st.lists(_REPLICAS, min_size=1, max_size=2).map(tuple),
            properties=st.sampled_from([(), (("min.insync.replicas", "1"),)]),
        ),
        admin.ConfigChangeField: st.builds(
            ConfigChange, resource=st.just(ConfigResource.TOPIC), name=st.just("orders"), changes=_CHANGES
        ),
        admin.DeletionOffset: st.one_of(st.none(), st.integers(0, 100)),
        admin.ElectionField: st.sampled_from(admin_messages.RequestedElection),
        admin.PartitionSet: _PARTITION_SET,
        admin.OptionalBrokerId: st.one_of(st.none(), _BROKER),
        admin.RequiredBrokerId: _BROKER,
        admin.Replicas: _REPLICAS,
        admin.FeatureLevelField: st.sampled_from(
            [FeatureLevel(ELR_VERSION, 0), FeatureLevel(ELR_VERSION, 1), FeatureLevel("metadata.version", 20)]
        ),
    }
    if isinstance(field, fields.Choice):
        return st.sampled_from(field.kind)
    return strategies[type(field)]


ACTIONS: Final[st.SearchStrategy[actions.Action]] = st.one_of(
    *(
        st.builds(row.kind, **{name: _value(field) for name, field in row.fields.items()})
        for row in actions.ACTION_SPECS.values()
    )
).filter(lambda action: not any(action.problems()))
"""Any action that can be performed and that both notations can say."""


def names(*, controllers: int = 3) -> Names:
    """Returns what these actions may name."""
    return Names(
        brokers=BROKERS,
        controllers=controllers,
        partitions=PARTITIONS,
        producers=tuple(fields.PLANNED_PRODUCERS.values()),
    )

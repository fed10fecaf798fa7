"""Turns a scenario's workload into the configuration of clients."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from laststand.chaos.scenario.scenario import Scenario, TransactionsPlan
from laststand.emulator.client.config import (
    ClientConfig,
    ConsumerConfig,
    GroupConfig,
    MembersConfig,
    ProducerConfig,
    TransactionPaceConfig,
    TransactionsConfig,
    Wire,
)
from laststand.emulator.core.client.settings import (
    UNNAMED_GROUP,
    ConsumerSettings,
    ProducerSettings,
    consumer_settings,
    member_settings,
    producer_settings,
)
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.plan.fields import COMMITTED_READER, TRANSACTIONAL

_RECORD_SIZE: Final = 100
_REQUEST_TIMEOUT_MS: Final = 2_000
_TRANSACTION_TIMEOUT_MS: Final = 10_000


def client_config(
    scenario: Scenario,
    *,
    history_path: Path,
    control_port: int,
    token_file: Path,
    session_timeout_ms: int,
    switches: Switches,
    wire: Wire = Wire.GRPC,
    broker_numbers: Mapping[int, int] = {},
) -> ClientConfig:
    """Returns the configuration of a run's client process."""
    return ClientConfig(
        history_path=str(history_path),
        control_port=control_port,
        token_file=str(token_file),
        brokers=scenario.broker_ids,
        session_timeout_ms=session_timeout_ms,
        producers=producers_of(scenario),
        consumers=consumers_of(scenario),
        transactions=transactions_of(scenario, switches),
        members=members_of(scenario),
        wire=wire,
        broker_numbers=dict(broker_numbers),
    )


def producers_of(scenario: Scenario) -> tuple[ProducerConfig, ...]:
    """Returns the scenario's producers."""
    return tuple(
        ProducerConfig(
            name=plan.name,
            rate=plan.rate,
            record_size=plan.record_size,
            partitions=_partitions(scenario, plan.topics),
            awaited=tuple(topic for topic in plan.topics if topic in scenario.made_topics),
            settings=producer_settings(plan.acks, dict(plan.properties)),
        )
        for plan in scenario.producers
    )


def consumers_of(scenario: Scenario) -> tuple[ConsumerConfig, ...]:
    """Returns the scenario's consumers, which read while it is played."""
    return tuple(
        ConsumerConfig(
            name=f"consumer-{index}",
            partitions=_partitions(scenario, plan.topics),
            settings=consumer_settings(dict(plan.properties)),
        )
        for index, plan in enumerate(scenario.consumers)
    )


def transactions_of(scenario: Scenario, switches: Switches) -> TransactionsConfig | None:
    """Returns the transactional producer of a scenario that has a topic for what its coordinator knows."""
    if all(topic.name != TRANSACTIONS_TOPIC for topic in scenario.topics):
        return None
    partitions = tuple(each for each in scenario.partitions if each.topic not in INTERNAL_TOPICS)
    return TransactionsConfig(
        name=TRANSACTIONAL,
        topics=tuple(dict.fromkeys(partition.topic for partition in partitions)),
        version=2 if switches.epoch_per_transaction else 1,
        record_size=_RECORD_SIZE,
        settings=ProducerSettings(
            request_timeout_ms=_REQUEST_TIMEOUT_MS, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
        ),
        reader=ConsumerConfig(
            name=COMMITTED_READER,
            partitions=partitions,
            settings=ConsumerSettings(isolation_level="read_committed"),
        ),
        pace=None if scenario.transactions is None else _transaction_pace(scenario.transactions, partitions),
    )


def members_of(scenario: Scenario) -> MembersConfig | None:
    """Returns the members of groups of a scenario that has a topic for what their coordinators know."""
    if all(topic.name != OFFSETS_TOPIC for topic in scenario.topics):
        return None
    topics = sorted({partition.topic for partition in scenario.partitions if partition.topic not in INTERNAL_TOPICS})
    groups = tuple(
        GroupConfig(
            name=plan.name,
            members=plan.members,
            is_static=plan.is_static,
            settings=member_settings(dict(plan.properties)),
        )
        for plan in scenario.groups
    )
    return MembersConfig(topics=tuple(topics), settings=UNNAMED_GROUP, groups=groups)


def _transaction_pace(plan: TransactionsPlan, partitions: tuple[TopicPartition, ...]) -> TransactionPaceConfig:
    return TransactionPaceConfig(
        partitions=partitions,
        width=plan.partitions,
        records=plan.size,
        abort_every=plan.abort_every,
        rate=plan.rate,
    )


def _partitions(scenario: Scenario, topics: tuple[str, ...]) -> tuple[TopicPartition, ...]:
    made = (partition for partition in scenario.made_partitions if partition.topic in scenario.made_topics)
    return tuple(partition for partition in (*scenario.partitions, *made) if partition.topic in topics)

"""Configuration of the client process: one JSON file, read once."""

from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.client.settings import ConsumerSettings, MemberSettings, ProducerSettings
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import BrokerId, TopicPartition


class ProducerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One producer.

    Attributes:
        name: its name in the history, such as ``producer-0``.
        rate: records per second.
        record_size: bytes of a record's value.
        batch_size: maximal bytes of values in a batch; a larger record has a batch of its own.
        tick_ms: interval at which records are made; one batch is due at each tick, or several at high rates.
        partitions: take turns.
        awaited: topics among them that are made while it runs; it makes records for them once it knows their leaders.
    """

    name: str
    rate: int
    record_size: int
    batch_size: int = 16_384
    tick_ms: int = 20
    partitions: tuple[TopicPartition, ...]
    awaited: tuple[str, ...] = ()
    settings: ProducerSettings


class ConsumerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One consumer with a fixed assignment."""

    name: str
    partitions: tuple[TopicPartition, ...]
    settings: ConsumerSettings


class TransactionPaceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Transactions that a producer makes by itself.

    Attributes:
        partitions: take turns.
        width: number of partitions that a transaction writes to.
        records: of each batch.
        abort_every: one in this many transactions is aborted; 0 for none.
        rate: transactions per second, while none is under way.
    """

    partitions: tuple[TopicPartition, ...]
    width: int
    records: int
    abort_every: int
    rate: int


class TransactionsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The transactional producer, and the read_committed consumer of its records.

    Attributes:
        name: its name in the history, which is also the transactional id.
        topics: the topics that it writes to.
        version: of the cluster's transactions.
        record_size: bytes of a record's value.
        reader: the consumer of the committed records.
        pace: the transactions that it makes by itself, if any.
    """

    name: str
    topics: tuple[str, ...]
    version: int
    record_size: int
    settings: ProducerSettings
    reader: ConsumerConfig
    pace: TransactionPaceConfig | None = None


class GroupConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer group, and how many members are there from the start."""

    name: str
    members: int
    is_static: bool = False
    settings: MemberSettings


class MembersConfig(msgspec.Struct, frozen=True, kw_only=True):
    """All members of consumer groups.

    Attributes:
        topics: the topics that they subscribe to.
        settings: of members of a group that is none of ``groups``.
        groups: those that the workload names.
    """

    topics: tuple[str, ...]
    settings: MemberSettings
    groups: tuple[GroupConfig, ...] = ()

    def settings_of(self, group_id: str) -> MemberSettings:
        """Returns the settings of a group's members."""
        return next((group.settings for group in self.groups if group.name == group_id), self.settings)


class Wire(Enum):
    """The protocol that nodes speak."""

    GRPC = "grpc"
    """Our own nodes."""

    KAFKA = "kafka"
    """Apache Kafka."""

    KAFKA_WITH_LOGIN = "kafka-with-login"
    """Apache Kafka where each process proves its name by the cluster's token (SASL/PLAIN)."""


class ClientConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The whole process.

    Attributes:
        history_path: file to create.
        control_port: where the harness listens for this process, on loopback.
        token_file: file with the cluster's token, which harness and nodes require.
        brokers: every broker; any of them is asked for metadata.
        session_timeout_ms: the cluster's; silent connections are given up after half of it.
        wire: the protocol by which brokers are called.
        broker_numbers: the brokers' own ids, if the cluster numbers them differently.
    """

    history_path: str
    control_port: int
    token_file: str
    brokers: tuple[BrokerId, ...]
    session_timeout_ms: int
    producers: tuple[ProducerConfig, ...]
    consumers: tuple[ConsumerConfig, ...]
    transactions: TransactionsConfig | None = None
    members: MembersConfig | None = None
    wire: Wire = Wire.GRPC
    broker_numbers: dict[int, int] = {}


FINAL_CONSUMER: Final = "final-consumer"
"""Name of the consumer that reads everything at the end."""

_FINAL_REQUEST_TIMEOUT_MS: Final = 2_000
_FINAL_FETCH_MAX_WAIT_MS: Final = 100
"""Tansu 0.6 answers a fetch that may not wait without records."""


def final_consumer(partitions: tuple[TopicPartition, ...]) -> ConsumerConfig:
    """Returns the consumer that reads everything at the end; it hardly waits for further records."""
    return ConsumerConfig(
        name=FINAL_CONSUMER,
        partitions=partitions,
        settings=ConsumerSettings(
            fetch_max_wait_ms=_FINAL_FETCH_MAX_WAIT_MS, request_timeout_ms=_FINAL_REQUEST_TIMEOUT_MS
        ),
    )


_DECODER: Final = msgspec.json.Decoder(ClientConfig)


def read_config(path: Path) -> ClientConfig:
    """Returns the configuration in a file.

    Raises:
        ConfigError: the file is missing or is no such configuration.
    """
    try:
        return _DECODER.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(key="config", value=str(path), expected=f"a client configuration ({error})") from None


def write_config(path: Path, config: ClientConfig) -> None:
    """Writes a configuration for ``read_config``."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(config)))

"""Turns a scenario's workload into the configuration of clients."""

from pathlib import Path

from laststand.chaos.scenario.scenario import Scenario
from laststand.emulator.client.config import ClientConfig, ConsumerConfig, ProducerConfig, Wire
from laststand.emulator.core.client.settings import consumer_settings, producer_settings
from laststand.emulator.core.types import TopicPartition


def client_config(
    scenario: Scenario,
    *,
    history_path: Path,
    control_port: int,
    token_file: Path,
    session_timeout_ms: int,
    wire: Wire = Wire.GRPC,
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
        wire=wire,
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


def _partitions(scenario: Scenario, topics: tuple[str, ...]) -> tuple[TopicPartition, ...]:
    made = (partition for partition in scenario.made_partitions if partition.topic in scenario.made_topics)
    return tuple(partition for partition in (*scenario.partitions, *made) if partition.topic in topics)

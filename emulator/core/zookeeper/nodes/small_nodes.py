"""The nodes of a few fields: controller, broker, notifications, configuration."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition
from laststand.emulator.core.zookeeper.errors import MalformedNodeError
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.nodes.node_json import JsonObject, decode_object, encode, integer

LOG_DIR_FAILED: Final = 1
"""The only event of a log-directory notification."""


def encode_controller(broker_id: BrokerId, *, now_ms: int) -> bytes:
    """Writes ``/controller`` (Kafka's ``ControllerZNode``)."""
    return encode({"version": 1, "brokerid": broker_id, "timestamp": str(now_ms)})


def decode_controller(data: bytes) -> BrokerId | None:
    """Returns the broker in ``/controller``; ``None`` where the text is no JSON.

    Raises:
        MalformedNodeError: the node names no broker.
    """
    content = decode_object(data, what="controller")
    return None if content is None else BrokerId(NodeId(integer(content, "brokerid", what="controller")))


def encode_controller_epoch(controller_epoch: ControllerEpoch) -> bytes:
    """Writes ``/controller_epoch``: decimal text."""
    return str(controller_epoch).encode()


def decode_controller_epoch(data: bytes) -> ControllerEpoch:
    """Reads ``/controller_epoch``.

    Raises:
        MalformedNodeError: the text is not a number.
    """
    try:
        return ControllerEpoch(int(data))
    except ValueError:
        raise MalformedNodeError(what="controller epoch", reason=f"{data!r} is no number") from None


class RegisteredEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a broker, and its rack."""

    host: str = "localhost"
    port: int = 9092
    rack: str = ""


def encode_broker(endpoint: RegisteredEndpoint, *, version: int, now_ms: int) -> bytes:
    """Writes a broker's node (Kafka's ``BrokerIdZNode``); version 5, with features, from IBP 2.7 on."""
    content: JsonObject = {
        "version": version,
        "host": endpoint.host,
        "port": endpoint.port,
        "endpoints": [f"PLAINTEXT://{endpoint.host}:{endpoint.port}"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "jmx_port": -1,
        "timestamp": str(now_ms),
    }
    if endpoint.rack:
        content["rack"] = endpoint.rack
    if version >= _VERSION_WITH_FEATURES:
        content["features"] = {}
    return encode(content)


_VERSION_WITH_FEATURES: Final = 5


def decode_rack(data: bytes) -> str:
    """Reads a broker's rack; empty if its node names none, or has no data yet."""
    content = decode_object(data, what="broker")
    rack = None if content is None else content.get("rack")
    return rack if isinstance(rack, str) else ""


def encode_isr_notification(partitions: Iterable[TopicPartition]) -> bytes:
    """Writes which partitions' ISR a leader changed (Kafka's ``IsrChangeNotificationZNode``)."""
    named: JsonObject = {
        "version": 1,
        "partitions": [{"topic": name.topic, "partition": name.partition} for name in sorted(partitions)],
    }
    return encode(named)


def decode_isr_notification(data: bytes) -> frozenset[TopicPartition]:
    """Reads which partitions a notification names; none where the text is no JSON.

    Raises:
        MalformedNodeError: a partition without topic or number.
    """
    what = "ISR change notification"
    content = decode_object(data, what=what)
    named = None if content is None else content.get("partitions")
    found = set()
    for entry in named if isinstance(named, list) else []:
        topic = entry.get("topic") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(topic, str):
            raise MalformedNodeError(what=what, reason=f"{entry!r} names no partition")
        found.add(TopicPartition(topic, integer(entry, "partition", what=what)))
    return frozenset(found)


def encode_log_dir_event(broker_id: BrokerId) -> bytes:
    """Writes that a log directory of a broker failed (Kafka's ``LogDirEventNotificationSequenceZNode``)."""
    return encode({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILED})


def decode_log_dir_event(data: bytes) -> BrokerId | None:
    """Returns the broker whose log directory failed; ``None`` if the text is no JSON.

    Raises:
        MalformedNodeError: the node names no broker.
    """
    content = decode_object(data, what="log directory event")
    return None if content is None else BrokerId(NodeId(integer(content, "broker", what="log directory event")))


def encode_config(config: Mapping[str, str]) -> bytes:
    """Writes a configuration node."""
    return encode({"version": 1, "config": dict(sorted(config.items()))})


def decode_config(data: bytes) -> dict[str, str]:
    """Reads a configuration node; empty if the text is no JSON."""
    content = decode_object(data, what="configuration")
    config = None if content is None else content.get("config")
    if not isinstance(config, dict):
        return {}
    return {key: value for key, value in config.items() if isinstance(value, str)}


class ProducerIdBlock(msgspec.Struct, frozen=True, kw_only=True):
    """Producer ids that a broker took: ``start`` to ``end``, both included."""

    broker_id: BrokerId
    start: int
    end: int


def encode_producer_ids(block: ProducerIdBlock) -> bytes:
    """Writes the block that was taken last (Kafka's ``ProducerIdBlockZNode``)."""
    return encode(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.start),
            "block_end": str(block.end),
        }
    )


def decode_producer_ids(data: bytes) -> ProducerIdBlock | None:
    """Reads the last allocated block; ``None`` if there was none, or the text is no JSON.

    Raises:
        MalformedNodeError: the JSON is not a block.
    """
    what = "producer ids"
    content = decode_object(data, what=what)
    if content is None:
        return None
    start, end = content.get("block_start"), content.get("block_end")
    if not isinstance(start, str) or not isinstance(end, str) or not (start + end).isdigit():
        raise MalformedNodeError(what=what, reason=f"{start!r} to {end!r}")
    return ProducerIdBlock(
        broker_id=BrokerId(NodeId(integer(content, "broker", what=what))), start=int(start), end=int(end)
    )

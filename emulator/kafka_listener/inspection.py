"""A broker's answers about its own logs and the metadata quorum: producers, log directories, DescribeQuorum."""

import shutil
from collections.abc import Mapping
from typing import Final

from laststand.emulator.core import admin_messages
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.topic_names import is_legal
from laststand.emulator.core.types import ConfigResource, TopicPartition
from laststand.emulator.kafka.numbers import RESOURCE_NUMBERS
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served
from laststand.emulator.kafka_listener.topic_entries import by_topic

_TIMEOUT_MS: Final = 30_000
_METADATA_TOPIC: Final = "__cluster_metadata"
_ANY_RESOURCE_VERSION: Final = 1
"""Version of ListConfigResources that is about more than the metrics of clients."""

_BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 8, 16, 32
_TOPIC_TYPE, _BROKER_TYPE = RESOURCE_NUMBERS[ConfigResource.TOPIC], RESOURCE_NUMBERS[ConfigResource.BROKER]


async def _describe_producers(served: Served, request: ClientRequest) -> Message:
    return {
        "topics": [
            {
                "name": topic["name"],
                "partitions": [_producers(served, topic["name"], index) for index in topic["partitionIndexes"]],
            }
            for topic in request.body["topics"]
        ]
    }


def _producers(served: Served, topic: str, index: int) -> Message:
    if not is_legal(topic):
        message = f"Topic name is invalid: {topic!r}"
        return {"partitionIndex": index, "errorCode": ErrorCode.INVALID_TOPIC_EXCEPTION, "errorMessage": message}
    partition = served.broker.partition(TopicPartition(topic, index))
    if partition is None:
        is_known = TopicPartition(topic, index) in served.broker.image.partitions
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return {"partitionIndex": index, "errorCode": error, "errorMessage": error.name}
    return {
        "partitionIndex": index,
        "errorCode": ErrorCode.NONE,
        "activeProducers": [
            {
                "producerId": producer_id,
                "producerEpoch": entry.producer_epoch,
                "lastSequence": entry.batches[-1].last_sequence if entry.batches else -1,
                "lastTimestamp": entry.batches[-1].max_timestamp_ms if entry.batches else -1,
                "coordinatorEpoch": entry.coordinator_epoch,
                "currentTxnStartOffset": -1
                if entry.transaction_first_offset is None
                else entry.transaction_first_offset,
            }
            for producer_id, entry in partition.log.producers.entries()
        ],
    }


async def _describe_log_dirs(served: Served, request: ClientRequest) -> Message:
    asked = request.body["topics"]
    wanted = None if asked is None else {(topic["topic"], index) for topic in asked for index in topic["partitions"]}
    topics = by_topic(
        (partition.name.topic, _log_size(partition))
        for partition in served.broker.partitions
        if wanted is None or (partition.name.topic, partition.name.partition) in wanted
    )
    listed = [{"name": topic, "partitions": partitions} for topic, partitions in sorted(topics.items())]
    disk = shutil.disk_usage(served.log_dir)
    return {
        "results": [{"logDir": served.log_dir, "topics": listed, "totalBytes": disk.total, "usableBytes": disk.free}]
    }


def _log_size(partition: Partition) -> Message:
    log = partition.log
    return {
        "partitionIndex": partition.name.partition,
        "partitionSize": log.size_between(log.log_start_offset, log.log_end_offset),
        "offsetLag": max(0, log.high_watermark - log.log_end_offset),
        "isFutureKey": False,
    }


async def _describe_quorum(served: Served, request: ClientRequest) -> Message:
    body = request.body
    topics: list[Message] = []
    is_described = False
    for topic in body["topics"]:
        partitions: list[Message] = []
        for each in topic["partitions"]:
            is_metadata = topic["topicName"] == _METADATA_TOPIC and each["partitionIndex"] == 0
            state = await _quorum(served) if is_metadata else None
            is_described |= state is not None
            failed = {
                "errorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "errorMessage": "This server does not host this topic-partition.",
            }
            partitions.append({"partitionIndex": each["partitionIndex"], **(failed if state is None else state)})
        topics.append({"topicName": topic["topicName"], "partitions": partitions})
    return {"errorMessage": "", "topics": topics, "nodes": [_controller(served)] if is_described else []}


def _controller(served: Served) -> Message:
    host, port = served.controllers[served.controller_id]
    return {"nodeId": served.controller_id, "listeners": [{"name": "CONTROLLER", "host": host, "port": port}]}


async def _quorum(served: Served) -> Message | None:
    """Returns the one voter, which leads, and brokers as observers; ``None`` if the controller does not answer."""
    response = await served.controller.ask(
        served.controller_id, admin_messages.DescribeClusterRequest(), timeout_ms=_TIMEOUT_MS
    )
    if not isinstance(response, admin_messages.DescribeClusterResponse):
        return None
    end = response.metadata_end_offset
    return {
        "errorCode": ErrorCode.NONE,
        "errorMessage": "",
        "leaderId": served.controller_id,
        "leaderEpoch": 1,
        "highWatermark": end,
        "currentVoters": [{"replicaId": served.controller_id, "logEndOffset": end}],
        "observers": [
            {
                "replicaId": broker.broker_id,
                "logEndOffset": -1 if broker.applied_offset is None else broker.applied_offset + 1,
            }
            for broker in response.brokers
        ],
    }


async def _list_config_resources(served: Served, request: ClientRequest) -> Message:
    brokers = [str(node) for node in served.live_brokers()]
    names: dict[int, list[str]] = {_CLIENT_METRICS: []}
    if request.version >= _ANY_RESOURCE_VERSION:
        names |= {
            _TOPIC_TYPE: sorted(served.broker.image.topics),
            _BROKER_TYPE: brokers,
            _BROKER_LOGGER: brokers,
            _GROUP: [],
        }
    wanted = request.body["resourceTypes"] or names.keys()
    if not names.keys() >= set(wanted):
        return {"errorCode": ErrorCode.UNSUPPORTED_VERSION}
    return {
        "configResources": [
            {"resourceName": name, "resourceType": kind} for kind in dict.fromkeys(wanted) for name in names[kind]
        ]
    }


INSPECTION: Final[Mapping[int, Handler]] = {
    api_named("DescribeProducers").key: _describe_producers,
    api_named("DescribeLogDirs").key: _describe_log_dirs,
    api_named("DescribeQuorum").key: _describe_quorum,
    api_named("ListConfigResources").key: _list_config_resources,
}

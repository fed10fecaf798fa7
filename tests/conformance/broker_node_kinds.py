"""Vectors about a broker as a node: its life cycle, its AlterPartition queue, strays, parked requests."""

from collections.abc import Mapping
from typing import Any, Final

from laststand.emulator.core import inputs, messages, records
from laststand.emulator.core.broker.kraft.broker import Broker
from laststand.emulator.core.broker.kraft.stray import stray_reason
from laststand.emulator.core.broker.replicas.replica_log_info import replica_log_info
from laststand.emulator.core.effects import BrokerEffect, SendRequest, SendResponse
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    Offset,
    RequestId,
    TopicId,
    TopicPartition,
)
from laststand.emulator.simulator.nodes.batch_registry import ENCODE_RECORDS
from tests.conformance.broker_world import (
    NAME,
    TOPIC_ID,
    broker_epoch,
    broker_id,
    broker_ids,
    configured,
    leader_epoch,
    leading,
    loaded_log,
    record,
    shown,
)
from tests.conformance.harness import Fields, Handler, Vector, mismatches, step_mismatches

_CAUSE: Final = CauseId("vector")


def partition_of(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))


def fill_topics(image: MetadataImage, described: Fields) -> None:
    for key, replicas in described.items():
        name, _, label = key.partition(":")
        partition = partition_of(name)
        if partition.topic not in image.topics:
            _replay(image, records.TopicRecord(name=partition.topic, topic_id=TopicId(label)))
        ids = tuple(BrokerId(NodeId(one)) for one in replicas)
        _replay(
            image,
            records.PartitionRecord(
                topic_id=image.topics[partition.topic],
                partition=partition.partition,
                replicas=ids,
                isr=ids,
                leader=ids[0] if ids else None,
            ),
        )


def run_stray_check(vector: Vector) -> list[str]:
    """The decision whether one log on disk is a stray; image keys are ``topicId:partition``."""
    event = vector.event
    image = MetadataImage()
    fill_topics(
        image,
        {
            f"topic.{label}-{partition}:{label}": replicas
            for label, _, partition in (key.rpartition(":") for key in event["image"])
            for replicas in (event["image"][f"{label}:{partition}"],)
        },
    )
    label = event["log"]["topic_id"]
    base = loaded_log({"leo": 0}, high_watermark_checkpoint=0)
    fields = {field: getattr(base, field) for field in base.__struct_fields__}
    fields |= {
        "partition": TopicPartition(f"topic.{label}", event["log"]["partition"]),
        "topic_id": None if label is None else TopicId(label),
    }
    reason = stray_reason(inputs.LoadedLog(**fields), image, BrokerId(NodeId(event["broker"])))
    return mismatches(vector.expect, {"stray": reason is not None})


def _replay(image: MetadataImage, one: records.Record) -> None:
    image.replay(one, offset=image.next_offset)


def run_replica_log_info(vector: Vector) -> list[str]:
    """GetReplicaLogInfo."""
    before = vector.before
    log = before.get("log") or {"leo": before.get("leo", 0), "hw": before.get("hw", 0), "epochs": []}
    world = leading(vector.config, vector.switches, before, log=log, isr=["L"])
    world.image.topic_names[TOPIC_ID] = NAME.topic
    found: list[str] = []
    actual: dict[str, Any] = {}
    for index, step in enumerate(vector.steps):
        count = step.get("partitions", 1) if isinstance(step.get("partitions", 1), int) else 1
        asked = messages.GetReplicaLogInfoRequest(partitions=tuple((TOPIC_ID, 0) for _ in range(count)))
        response = replica_log_info(world.hosted, asked, broker_epoch(before.get("broker_epoch", 100)))
        first = response.partitions[0]
        refused = [one.error for one in response.partitions if one.error is not ErrorCode.NONE]
        actual = {
            "served": count - len(refused),
            "rest_error": refused[-1].name if refused else None,
            "error": first.error.name,
            "broker_epoch": shown(response.broker_epoch),
            "last_written_leader_epoch": shown(first.last_written_leader_epoch),
            "current_leader_epoch": shown(first.current_leader_epoch),
            "log_end_offset": shown(first.log_end_offset),
            "leo": shown(first.log_end_offset),
        }
        found += step_mismatches(index, step, actual, outcome="error")
    return found + mismatches(vector.final, actual)


class _ServingBroker:
    """A whole broker that leads one partition."""

    def __init__(self, vector: Vector) -> None:
        described = {"hw": 0, "epochs": [], **(vector.before.get("leader") or {})}
        self.now_ms = 0
        self.broker = Broker(configured(vector.config, vector.switches), ENCODE_RECORDS)
        self.responses: dict[RequestId, messages.Response] = {}
        self.requests = 0
        self.last: dict[str, RequestId] = {}
        isr = described.get("isr") or ["L", "F1"]
        replicas = broker_ids(vector.before.get("replicas") or list(dict.fromkeys(["L", "F1", *isr])))
        self.records: list[records.Record] = [
            *(
                records.RegisterBrokerRecord(
                    broker_id=one,
                    incarnation_id=IncarnationId("incarnation"),
                    broker_epoch=BrokerEpoch(100 + one),
                    log_dirs=(),
                    fenced=False,
                )
                for one in replicas
            ),
            records.TopicRecord(name=NAME.topic, topic_id=TOPIC_ID),
            records.PartitionRecord(
                topic_id=TOPIC_ID,
                partition=NAME.partition,
                replicas=replicas,
                isr=broker_ids(isr),
                leader=broker_id("L"),
                leader_epoch=LeaderEpoch(vector.before.get("leader_epoch", 0)),
            ),
        ]
        batch = records.MetadataBatch(base_offset=MetadataOffset(0), records=tuple(self.records))
        log = loaded_log(described, high_watermark_checkpoint=described["hw"])
        effects = self.step(inputs.Started(cause_id=_CAUSE))
        (registration,) = [one for one in effects if isinstance(one, SendRequest)]
        self.step(
            inputs.ResponseReceived(
                cause_id=_CAUSE,
                correlation_id=registration.correlation_id,
                response=messages.BrokerRegistrationResponse(error=ErrorCode.NONE, broker_epoch=BrokerEpoch(100)),
            )
        )
        self.step(inputs.MetadataReceived(cause_id=_CAUSE, batches=(batch,)))
        self.step(inputs.MetadataStreamOpened(cause_id=_CAUSE, end_offset=batch.end_offset))
        self.step(inputs.LogsLoaded(cause_id=_CAUSE, logs=(log,)))

    def step(self, incoming: inputs.BrokerInput) -> list[BrokerEffect]:
        effects = self.broker.step(incoming, now_ms=self.now_ms)
        for effect in effects:
            if isinstance(effect, SendResponse):
                self.responses[effect.request_id] = effect.response
        return effects

    def ask(self, kind: str, request: messages.Request) -> None:
        self.requests += 1
        self.last[kind] = RequestId(self.requests)
        self.step(inputs.RequestReceived(cause_id=_CAUSE, request_id=RequestId(self.requests), request=request))

    def advance(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while (deadline := self.broker.next_deadline_ms()) is not None and deadline <= end_ms:
            self.now_ms = max(self.now_ms, deadline)
            self.step(inputs.TimerFired(cause_id=_CAUSE))
        self.now_ms = end_ms

    def change(self, change: records.PartitionChangeRecord) -> None:
        batch = records.MetadataBatch(base_offset=self.broker.image.next_offset, records=(change,))
        self.step(inputs.MetadataReceived(cause_id=_CAUSE, batches=(batch,)))

    def observe(self) -> dict[str, Any]:
        partition = self.broker.partition(NAME)
        assert partition is not None
        fetch = self.responses.get(self.last.get("fetch", RequestId(0)))
        produce = self.responses.get(self.last.get("produce", RequestId(0)))
        actual: dict[str, Any] = {
            "fetch_done": fetch is not None,
            "produce_done": produce is not None,
            "leader_hw": partition.log.high_watermark,
            "hw": partition.log.high_watermark,
            "leader_leo": partition.log.log_end_offset,
            "leo": partition.log.log_end_offset,
        }
        if isinstance(fetch, messages.FetchResponse):
            (answer,) = fetch.partitions
            actual["response_hw"] = shown(answer.high_watermark)
            actual["response_error"] = actual["fetch_error"] = answer.error.name
            actual["response_records"] = 0 if answer.span is None else answer.span.end_offset - answer.span.base_offset
        if isinstance(produce, messages.ProduceResponse):
            actual["produce_error"] = produce.partitions[0].error.name
        return actual


def run_fetch_purgatory(vector: Vector) -> list[str]:
    """Produce and fetch requests that wait."""
    play = _ServingBroker(vector)
    found: list[str] = []
    for index, step in enumerate(vector.steps):
        match step["op"]:
            case "append" | "produce":
                batch = record(0, 0, count=step.get("records", 1))
                asked = messages.ProducePartition(topic=NAME.topic, partition=NAME.partition, batch=batch)
                timeout_ms = step.get("timeout_ms", 30_000)
                request = messages.ProduceRequest(acks=step.get("acks", -1), timeout_ms=timeout_ms, partitions=(asked,))
                play.ask("produce", request)
            case "fetch":
                play.ask("fetch", _fetch_request(step))
            case "advance":
                play.advance(step["ms"])
            case "become_follower":
                play.change(
                    records.PartitionChangeRecord(
                        topic_id=TOPIC_ID, partition=0, leader=broker_id(step.get("leader", "F1"))
                    )
                )
            case "become_leader":
                play.change(records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, isr=broker_ids(step["isr"])))
            case "check":
                pass
            case unknown:
                found.append(f"step {index}: operation {unknown} is not known")
        found += step_mismatches(index, step, play.observe())
    return found + mismatches(vector.final, play.observe())


def _fetch_request(step: Fields) -> messages.FetchRequest:
    replica = step.get("replica")
    asked = messages.FetchPartition(
        topic=NAME.topic,
        topic_id=TOPIC_ID,
        partition=NAME.partition,
        fetch_offset=Offset(step["offset"]),
        current_leader_epoch=leader_epoch(step.get("current_leader_epoch")),
        last_fetched_epoch=leader_epoch(step.get("last_fetched_epoch")),
        log_start_offset=Offset(step.get("log_start", 0)),
    )
    return messages.FetchRequest(
        partitions=(asked,),
        replica_id=None if replica in (None, "consumer") else broker_id(replica),
        replica_epoch=None,
        min_bytes=step.get("min_bytes", 1),
        max_wait_ms=step.get("max_wait_ms", 500),
    )


KINDS: Final[Mapping[str, Handler]] = {
    "stray_check": run_stray_check,
    "replica_log_info": run_replica_log_info,
    "fetch_purgatory": run_fetch_purgatory,
}

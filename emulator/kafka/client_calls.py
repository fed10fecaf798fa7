"""Requests of producers and consumers to brokers: Metadata, InitProducerId, Produce, Fetch, ListOffsets."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

from kio.schema.fetch.v16 import request as fetch
from kio.schema.fetch.v16 import response as fetched
from kio.schema.init_producer_id.v4 import request as init_producer_id
from kio.schema.init_producer_id.v4 import response as producer_id_given
from kio.schema.list_offsets.v7 import request as list_offsets
from kio.schema.list_offsets.v7 import response as offsets_listed
from kio.schema.metadata.v12 import request as metadata
from kio.schema.metadata.v12 import response as metadata_response
from kio.schema.produce.v11 import request as produce_by_name
from kio.schema.produce.v11 import response as produced_by_name
from kio.schema.produce.v13 import request as produce_by_id
from kio.schema.produce.v13 import response as produced_by_id
from kio.schema.types import BrokerId as KafkaBrokerId
from kio.schema.types import ProducerId as KafkaProducerId
from kio.schema.types import TransactionalId
from kio.static.primitive import Records, i8, i16, i32, i64
from kio.static.protocol import Entity

from laststand.emulator.core import messages
from laststand.emulator.core.batch import AbortedTransaction
from laststand.emulator.core.types import BrokerId, LeaderEpoch, NodeId, Offset, ProducerEpoch, ProducerId
from laststand.emulator.kafka.calls import (
    Call,
    Versions,
    brokers_of,
    call_of,
    error_of,
    to_epoch,
    to_milliseconds,
    to_name,
    topic_id_of,
    uuid_of,
)
from laststand.emulator.kafka.numbers import NONE, broker_or_none, leader_epoch_or_none, number_of, offset_or_none
from laststand.emulator.rpc.data_codec import Attachment, ParseFetched
from laststand.emulator.storage.batch_scan import BatchValidation, BytesFile, scan_batches

_PRODUCE: Final = 0
_BY_ID: Final = 13
_CONSUMER: Final = KafkaBrokerId(NONE)


def metadata_call(request: messages.MetadataRequest) -> Call:
    """Returns the call of MetadataRequest."""
    topics = tuple(metadata.MetadataRequestTopic(topic_id=None, name=to_name(name)) for name in request.topics)
    return call_of(
        metadata.MetadataRequest(
            topics=topics or None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        ),
        metadata_response.MetadataResponse,
        _metadata,
    )


def _metadata(response: metadata_response.MetadataResponse) -> messages.Response:
    topics = tuple(
        messages.MetadataTopic(
            name=topic.name or "",
            error=error_of(topic.error_code),
            topic_id=topic_id_of(topic.topic_id),
            partitions=tuple(
                messages.MetadataPartition(
                    partition=each.partition_index,
                    error=error_of(each.error_code),
                    leader=broker_or_none(each.leader_id),
                    leader_epoch=LeaderEpoch(each.leader_epoch),
                    replicas=brokers_of(each.replica_nodes),
                    isr=brokers_of(each.isr_nodes),
                )
                for each in topic.partitions
            ),
        )
        for topic in response.topics
    )
    brokers = tuple(BrokerId(NodeId(broker.node_id)) for broker in response.brokers)
    return messages.MetadataResponse(brokers=brokers, controller_id=None, topics=topics)


def init_producer_id_call(request: messages.InitProducerIdRequest) -> Call:
    """Returns the call of InitProducerIdRequest."""
    return call_of(
        init_producer_id.InitProducerIdRequest(
            transactional_id=None,
            transaction_timeout=to_milliseconds(60_000),
            producer_id=KafkaProducerId(number_of(request.producer_id)),
            producer_epoch=i16(number_of(request.producer_epoch)),
        ),
        producer_id_given.InitProducerIdResponse,
        _producer_id,
    )


def _producer_id(given: producer_id_given.InitProducerIdResponse) -> messages.Response:
    return messages.InitProducerIdResponse(
        error=error_of(given.error_code),
        producer_id=ProducerId(given.producer_id),
        producer_epoch=ProducerEpoch(given.producer_epoch),
    )


def produce_call(request: messages.ProduceRequest, attachments: Sequence[Attachment], versions: Versions) -> Call:
    """Returns the call of ProduceRequest, whose batches are the attachments, one per partition."""
    batches = [Records(bytes(attachment)) for attachment in attachments]
    timeout, acks = to_milliseconds(request.timeout_ms), i16(request.acks)
    transactional_id = None if request.transactional_id is None else TransactionalId(request.transactional_id)
    has_version_1 = transactional_id is not None and request.transaction_version < 2
    has_ids = all(each.topic_id is not None for each in request.partitions)
    if versions.get(_PRODUCE, 0) >= _BY_ID and has_ids and not has_version_1:
        return call_of(
            produce_by_id.ProduceRequest(
                transactional_id=transactional_id,
                acks=acks,
                timeout=timeout,
                topic_data=tuple(
                    produce_by_id.TopicProduceData(
                        topic_id=uuid_of(each.topic_id),
                        partition_data=(produce_by_id.PartitionProduceData(index=i32(each.partition), records=batch),),
                    )
                    for each, batch in zip(request.partitions, batches, strict=True)
                ),
            ),
            produced_by_id.ProduceResponse,
            _produced(request.partitions),
        )
    return call_of(
        produce_by_name.ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout=timeout,
            topic_data=tuple(
                produce_by_name.TopicProduceData(
                    name=to_name(each.topic),
                    partition_data=(produce_by_name.PartitionProduceData(index=i32(each.partition), records=batch),),
                )
                for each, batch in zip(request.partitions, batches, strict=True)
            ),
        ),
        produced_by_name.ProduceResponse,
        _produced(request.partitions),
    )


_Produced: TypeAlias = produced_by_name.ProduceResponse | produced_by_id.ProduceResponse


def _produced(asked: Sequence[messages.ProducePartition]) -> Callable[[_Produced], messages.Response]:
    def decode(response: _Produced) -> messages.Response:
        answers = [answer for topic in response.responses for answer in topic.partition_responses]
        partitions = tuple(
            messages.ProducePartitionResponse(
                topic=each.topic,
                partition=each.partition,
                error=error_of(answer.error_code),
                base_offset=offset_or_none(answer.base_offset),
                log_start_offset=offset_or_none(answer.log_start_offset),
                current_leader=broker_or_none(answer.current_leader.leader_id),
                current_leader_epoch=leader_epoch_or_none(answer.current_leader.leader_epoch),
            )
            for each, answer in zip(asked, answers, strict=True)
        )
        return messages.ProduceResponse(partitions=partitions)

    return decode


def fetch_call(request: messages.FetchRequest, parse: ParseFetched) -> Call:
    """Returns the call of a consumer's FetchRequest; ``parse`` reads the headers of fetched batches."""
    return Call(
        fetch.FetchRequest(
            max_wait=to_milliseconds(request.max_wait_ms),
            min_bytes=i32(request.min_bytes),
            max_bytes=i32(request.max_bytes),
            isolation_level=i8(request.isolation_level),
            topics=tuple(
                fetch.FetchTopic(topic_id=uuid_of(each.topic_id), partitions=(_fetch_partition(each),))
                for each in request.partitions
            ),
            forgotten_topics_data=(),
            rack_id=request.client_rack or "",
        ),
        fetched.FetchResponse,
        _fetched(request.partitions, parse),
    )


def _fetch_partition(asked: messages.FetchPartition) -> fetch.FetchPartition:
    return fetch.FetchPartition(
        partition=i32(asked.partition),
        current_leader_epoch=to_epoch(asked.current_leader_epoch),
        fetch_offset=i64(asked.fetch_offset),
        last_fetched_epoch=to_epoch(asked.last_fetched_epoch),
        partition_max_bytes=i32(asked.partition_max_bytes),
    )


def _fetched(
    asked: Sequence[messages.FetchPartition], parse: ParseFetched
) -> Callable[[Entity], tuple[messages.Response, tuple[bytes, ...]]]:
    def decode(entity: Entity) -> tuple[messages.Response, tuple[bytes, ...]]:
        response = cast(fetched.FetchResponse, entity)
        answers = [answer for topic in response.responses for answer in topic.partitions]
        blocks = tuple(_whole_batches(answer.records or b"") for answer in answers)
        if len(answers) != len(asked):
            return messages.FetchResponse(partitions=(), error=error_of(response.error_code)), ()
        partitions = tuple(
            messages.FetchPartitionResponse(
                topic=each.topic,
                partition=each.partition,
                error=error_of(answer.error_code),
                high_watermark=offset_or_none(answer.high_watermark),
                log_start_offset=offset_or_none(answer.log_start_offset),
                diverging_epoch=leader_epoch_or_none(answer.diverging_epoch.epoch),
                diverging_end_offset=offset_or_none(answer.diverging_epoch.end_offset),
                current_leader=broker_or_none(answer.current_leader.leader_id),
                current_leader_epoch=leader_epoch_or_none(answer.current_leader.leader_epoch),
                preferred_read_replica=broker_or_none(answer.preferred_read_replica),
                last_stable_offset=offset_or_none(answer.last_stable_offset),
                aborted_transactions=_aborted(answer.aborted_transactions or ()),
                batches=parse(block) if block else (),
            )
            for each, answer, block in zip(asked, answers, blocks, strict=True)
        )
        return messages.FetchResponse(partitions=partitions, error=error_of(response.error_code)), blocks

    return decode


def _aborted(transactions: Sequence[fetched.AbortedTransaction]) -> tuple[AbortedTransaction, ...]:
    return tuple(
        AbortedTransaction(producer_id=ProducerId(each.producer_id), first_offset=Offset(each.first_offset))
        for each in transactions
    )


def _whole_batches(block: bytes) -> bytes:
    """Returns a fetched block without its last batch where the broker has cut that off."""
    return block[: scan_batches(BytesFile(block), check=BatchValidation.HEADERS).valid_bytes]


def list_offsets_call(request: messages.ListOffsetsRequest) -> Call:
    """Returns the call of a consumer's ListOffsetsRequest."""
    return call_of(
        list_offsets.ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=i8(request.isolation_level),
            topics=tuple(
                list_offsets.ListOffsetsTopic(
                    name=to_name(each.topic),
                    partitions=(
                        list_offsets.ListOffsetsPartition(
                            partition_index=i32(each.partition),
                            current_leader_epoch=to_epoch(each.current_leader_epoch),
                            timestamp=i64(each.timestamp),
                        ),
                    ),
                )
                for each in request.partitions
            ),
        ),
        offsets_listed.ListOffsetsResponse,
        _listed(request.partitions),
    )


def _listed(
    asked: Sequence[messages.ListOffsetsPosition],
) -> Callable[[offsets_listed.ListOffsetsResponse], messages.Response]:
    def decode(response: offsets_listed.ListOffsetsResponse) -> messages.Response:
        answers = [answer for topic in response.topics for answer in topic.partitions]
        partitions = tuple(
            messages.ListOffsetsResult(
                topic=each.topic,
                partition=each.partition,
                error=error_of(answer.error_code),
                offset=offset_or_none(answer.offset),
                leader_epoch=leader_epoch_or_none(answer.leader_epoch),
            )
            for each, answer in zip(asked, answers, strict=True)
        )
        return messages.ListOffsetsResponse(partitions=partitions)

    return decode

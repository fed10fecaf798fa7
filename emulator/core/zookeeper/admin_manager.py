"""Requests of administrators in a ZooKeeper cluster: reads, decisions and writes (Kafka's ``ZkAdminManager``).

Each request is a program that any client of ZooKeeper can run. It reads the nodes that its decision needs, decides by
the rules of a KRaft controller, and writes; the elected controller sees the nodes by its watches. So a topic is there
once the request is answered, and has leaders a little later.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from laststand.emulator.core import admin_messages, effects, records
from laststand.emulator.core.controller.config_requests import alter_config_resource, describe_config_resource
from laststand.emulator.core.controller.reassignment import ongoing_reassignments
from laststand.emulator.core.controller.topics import TopicOutcome, add_partitions, create_topic
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.effective_config import CLUSTER
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.topic_names import is_legal
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    ConfigResource,
    IncarnationId,
    NodeId,
    RequestId,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import exchange, operations
from laststand.emulator.core.zookeeper.administration import (
    config_node,
    mark_deleted,
    write_config,
    write_partitions,
    write_topic,
)
from laststand.emulator.core.zookeeper.controller.broker_changes import read_brokers
from laststand.emulator.core.zookeeper.controller.exchange import TimeCame
from laststand.emulator.core.zookeeper.controller.store import children_of
from laststand.emulator.core.zookeeper.errors import MalformedNodeError, ZooKeeperRefusedError
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_config
from laststand.emulator.core.zookeeper.nodes.topic import TopicAssignment, decode_topic
from laststand.emulator.core.zookeeper.program_queue import ProgramQueue
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules

AdminRequest: TypeAlias = (
    admin_messages.CreateTopicsRequest
    | admin_messages.CreatePartitionsRequest
    | admin_messages.DeleteTopicsRequest
    | admin_messages.IncrementalAlterConfigsRequest
    | admin_messages.DescribeConfigsRequest
    | admin_messages.ListPartitionReassignmentsRequest
)
AdminResponse: TypeAlias = (
    admin_messages.CreateTopicsResponse
    | admin_messages.CreatePartitionsResponse
    | admin_messages.DeleteTopicsResponse
    | admin_messages.IncrementalAlterConfigsResponse
    | admin_messages.DescribeConfigsResponse
    | admin_messages.ListPartitionReassignmentsResponse
)

_OF_EVERY_BROKER: Final = (admin_messages.IncrementalAlterConfigsRequest, admin_messages.DescribeConfigsRequest)
"""Requests that a broker answers that is not the controller."""

_FIRST_CORRELATION_ID: Final = -1
_CORRELATION_ID_STEP: Final = -1
"""Correlation ids are negative: those of the broker and of the controller in its process are not."""

_SubjectT = TypeVar("_SubjectT")


class AdminSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The input of decisions besides the nodes in ZooKeeper.

    Attributes:
        node_id: of the broker whose configuration counts.
        properties: of every node.
        switches: rules that both kinds of cluster have.
        rules: of the cluster, which decide how nodes are written.
        ibp: of the brokers.
    """

    node_id: NodeId
    properties: NodeProperties
    switches: Switches
    rules: ZooKeeperRules
    ibp: InterBrokerProtocol


class AdminAsked(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator asks a broker; it is answered once."""

    cause_id: CauseId
    request_id: RequestId
    request: AdminRequest


class _Waiting(NamedTuple):
    asked: AdminAsked
    deadline_ms: int


class AdminManager:
    """Carries out one broker's requests, in order; those that any broker may serve survive the session's end.

    A request waits for ``request.timeout.ms`` at most, for those before it and for ZooKeeper. Then it is answered with
    REQUEST_TIMED_OUT; if it had begun by then, it may still be carried out, as in Kafka.

    Args:
        settings: on which decisions depend.
        is_controller: returns whether this broker is elected.
    """

    def __init__(self, settings: AdminSettings, *, is_controller: Callable[[], bool]) -> None:
        self._settings = settings
        self._is_controller = is_controller
        self._queue: ProgramQueue[tuple[AdminAsked, AdminResponse]] = ProgramQueue(
            first_correlation_id=_FIRST_CORRELATION_ID, correlation_id_step=_CORRELATION_ID_STEP
        )
        self._waiting: list[_Waiting] = []
        self._has_session = False

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimeCame`` is due, or ``None`` if nothing waits."""
        return min((each.deadline_ms for each in self._waiting), default=None)

    def step(
        self, incoming: AdminAsked | TimeCame | exchange.ZooKeeperInput, *, now_ms: int
    ) -> list[exchange.ZooKeeperRequest | effects.SendResponse]:
        """Reacts to an input; returns what is to be done, in order."""
        answers: list[effects.SendResponse] = []
        match incoming:
            case AdminAsked(request=request) if not isinstance(request, _OF_EVERY_BROKER) and not self._is_controller():
                answers.append(_answer(incoming, failed(request, ErrorCode.NOT_CONTROLLER)))
            case AdminAsked():
                self._waiting.append(_Waiting(incoming, now_ms + self._settings.properties.request_timeout_ms))
            case exchange.SessionEstablished():
                self._has_session = True
            case exchange.ZooKeeperAnswered(correlation_id=correlation_id, answers=given):
                self._queue.answered(correlation_id, given)
            case exchange.ZooKeeperConnectionLost():
                self._queue.connection_lost()
            case exchange.ZooKeeperReconnected():
                self._queue.reconnected()
            case exchange.SessionExpired():
                self._has_session = False
                self._queue.abandon()
                of_controller = [each for each in self._waiting if not isinstance(each.asked.request, _OF_EVERY_BROKER)]
                answers += self._give_up(of_controller, ErrorCode.NOT_CONTROLLER)
            case _:
                pass
        answers += self._finished()
        overdue = [each for each in self._waiting if each.deadline_ms <= now_ms]
        answers += self._give_up(overdue, ErrorCode.REQUEST_TIMED_OUT)
        while self._has_session and self._queue.is_idle and self._waiting:
            self._queue.enqueue(self._program(self._waiting[0].asked))
            answers += self._finished()
        requests, self._queue.requests = self._queue.requests, []
        return [*requests, *answers]

    def _finished(self) -> list[effects.SendResponse]:
        """Returns the answers of programs that are done, but for requests that were given up."""
        results, self._queue.results = self._queue.results, []
        answers = []
        for asked, response in results:
            if any(each.asked is asked for each in self._waiting):
                self._waiting = [each for each in self._waiting if each.asked is not asked]
                answers.append(_answer(asked, response))
        return answers

    def _give_up(self, given_up: list[_Waiting], error: ErrorCode) -> list[effects.SendResponse]:
        self._waiting = [each for each in self._waiting if each not in given_up]
        return [_answer(each.asked, failed(each.asked.request, error)) for each in given_up]

    def _program(self, asked: AdminAsked) -> operations.Program[tuple[AdminAsked, AdminResponse]]:
        try:
            return asked, (yield from administer(asked.request, self._settings))
        except (ZooKeeperRefusedError, MalformedNodeError):
            return asked, failed(asked.request, ErrorCode.UNKNOWN_SERVER_ERROR)


def _answer(asked: AdminAsked, response: AdminResponse) -> effects.SendResponse:
    return effects.SendResponse(request_id=asked.request_id, response=response, cause_id=asked.cause_id)


def failed(request: AdminRequest, error: ErrorCode) -> AdminResponse:
    """Returns the response to a request that was not carried out."""
    match request:
        case admin_messages.CreateTopicsRequest(topics=topics):
            return admin_messages.CreateTopicsResponse(topics=_topics_failed((each.name for each in topics), error))
        case admin_messages.CreatePartitionsRequest(topics=added):
            return admin_messages.CreatePartitionsResponse(topics=_topics_failed((each.name for each in added), error))
        case admin_messages.DeleteTopicsRequest(topics=names):
            return admin_messages.DeleteTopicsResponse(topics=_topics_failed(names, error))
        case admin_messages.IncrementalAlterConfigsRequest(resources=altered):
            return admin_messages.IncrementalAlterConfigsResponse(
                resources=tuple(_config_result(each, error) for each in altered)
            )
        case admin_messages.DescribeConfigsRequest(resources=described):
            return admin_messages.DescribeConfigsResponse(
                resources=tuple(
                    admin_messages.DescribedConfigResource(
                        resource=each.resource, resource_name=each.resource_name, error=error
                    )
                    for each in described
                )
            )
        case admin_messages.ListPartitionReassignmentsRequest():
            return admin_messages.ListPartitionReassignmentsResponse(error=error)


def administer(request: AdminRequest, settings: AdminSettings) -> operations.Program[AdminResponse]:
    """Carries out a request; returns the result for each subject, in order.

    Raises:
        MalformedNodeError: a node has a content that Kafka does not write.
    """
    match request:
        case admin_messages.CreateTopicsRequest(topics=topics, validate_only=is_trial):
            made = yield from _each(topics, lambda topic: _create_topic(topic, settings, is_trial=is_trial))
            return admin_messages.CreateTopicsResponse(topics=made)
        case admin_messages.CreatePartitionsRequest(topics=added, validate_only=is_trial):
            grown = yield from _each(added, lambda wanted: _add_partitions(wanted, settings, is_trial=is_trial))
            return admin_messages.CreatePartitionsResponse(topics=grown)
        case admin_messages.DeleteTopicsRequest(topics=names):
            return admin_messages.DeleteTopicsResponse(topics=(yield from _each(names, _delete_topic)))
        case admin_messages.IncrementalAlterConfigsRequest(resources=resources, validate_only=is_trial):
            altered = yield from _each(resources, lambda resource: _alter(resource, settings, is_trial=is_trial))
            return admin_messages.IncrementalAlterConfigsResponse(resources=altered)
        case admin_messages.DescribeConfigsRequest(resources=asked):
            described = yield from _each(asked, lambda resource: _describe(resource, settings))
            return admin_messages.DescribeConfigsResponse(resources=described)
        case admin_messages.ListPartitionReassignmentsRequest(partitions=partitions):
            all_topics = children_of((yield (operations.GetChildren(path=paths.TOPICS),)), paths.TOPICS)
            view = yield from _read_view(settings, topics=all_topics)
            named = None if partitions is None else [TopicPartition(*name) for name in partitions]
            return admin_messages.ListPartitionReassignmentsResponse(
                error=ErrorCode.NONE, partitions=ongoing_reassignments(view, named)
            )


def _each(
    subjects: Iterable[_SubjectT], carry_out: Callable[[_SubjectT], operations.Program[operations.ResultT]]
) -> operations.Program[tuple[operations.ResultT, ...]]:
    results: list[operations.ResultT] = []
    for subject in subjects:
        results.append((yield from carry_out(subject)))  # noqa: PERF401 - one waits for the other
    return tuple(results)


# --- Topics -------------------------------------------------------------------------------------------------------


def _create_topic(
    topic: admin_messages.CreatableTopic, settings: AdminSettings, *, is_trial: bool
) -> operations.Program[admin_messages.TopicResult]:
    others = yield from _colliding(topic.name)
    alive = {each for row in topic.assignments for each in row}
    view = yield from _read_view(settings, topics=[topic.name, *others], alive=alive)
    outcome = create_topic(view, topic)
    if is_trial or outcome.error is not ErrorCode.NONE:
        return _topic_result(topic.name, outcome)
    placed = msgspec.structs.replace(topic, assignments=_assignments(outcome))
    return (yield from write_topic(placed, settings.rules, settings.ibp))


def _add_partitions(
    wanted: admin_messages.CreatablePartitions, settings: AdminSettings, *, is_trial: bool
) -> operations.Program[admin_messages.TopicResult]:
    outcome = add_partitions((yield from _read_view(settings, topics=[wanted.name])), wanted)
    if is_trial or outcome.error is not ErrorCode.NONE:
        return _topic_result(wanted.name, outcome)
    placed = msgspec.structs.replace(wanted, assignments=_assignments(outcome))
    return (yield from write_partitions(placed, settings.rules))


def _colliding(topic: str) -> operations.Program[list[str]]:
    """Reads the other topics whose names differ from a name only by dots and underscores; Kafka refuses such names."""
    if not {".", "_"} & set(topic):
        return []
    plain = topic.replace(".", "_")
    existing = children_of((yield (operations.GetChildren(path=paths.TOPICS),)), paths.TOPICS)
    return [each for each in existing if each != topic and each.replace(".", "_") == plain]


def _delete_topic(topic: str) -> operations.Program[admin_messages.TopicResult]:
    if not is_legal(topic):
        return admin_messages.TopicResult(name=topic, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return (yield from mark_deleted(topic))


def _assignments(outcome: TopicOutcome) -> tuple[tuple[BrokerId, ...], ...]:
    decided = (decision.record for decision in outcome.decisions)
    return tuple(record.replicas for record in decided if isinstance(record, records.PartitionRecord))


def _topic_result(name: str, outcome: TopicOutcome) -> admin_messages.TopicResult:
    return admin_messages.TopicResult(name=name, error=outcome.error, error_message=outcome.message)


def _topics_failed(names: Iterable[str], error: ErrorCode) -> tuple[admin_messages.TopicResult, ...]:
    return tuple(admin_messages.TopicResult(name=name, error=error) for name in names)


# --- Configuration ------------------------------------------------------------------------------------------------


def _alter(
    resource: admin_messages.AlterConfigsResource, settings: AdminSettings, *, is_trial: bool
) -> operations.Program[admin_messages.ConfigResourceResult]:
    view = yield from _read_view_of(resource.resource, resource.resource_name, settings)
    outcome = alter_config_resource(view, resource)
    if is_trial or outcome.error is not ErrorCode.NONE:
        return _config_result(resource, outcome.error, outcome.message)
    return (yield from write_config(resource))


def _config_result(
    resource: admin_messages.AlterConfigsResource, error: ErrorCode, message: str = ""
) -> admin_messages.ConfigResourceResult:
    return admin_messages.ConfigResourceResult(
        resource=resource.resource, resource_name=resource.resource_name, error=error, error_message=message
    )


def _describe(
    asked: admin_messages.DescribeConfigsResource, settings: AdminSettings
) -> operations.Program[admin_messages.DescribedConfigResource]:
    view = yield from _read_view_of(asked.resource, asked.resource_name, settings)
    return describe_config_resource(view, asked)


# --- What decisions depend on -------------------------------------------------------------------------------------


def _read_view_of(
    resource: ConfigResource, resource_name: str, settings: AdminSettings
) -> operations.Program[ClusterView]:
    """Reads the nodes that decisions about the configuration of a resource depend on."""
    is_topic = resource is ConfigResource.TOPIC
    named = () if is_topic else (resource_name,)
    return (yield from _read_view(settings, topics=[resource_name] if is_topic else [], brokers=named))


def _read_view(
    settings: AdminSettings,
    *,
    topics: Iterable[str],
    brokers: Iterable[str] = (),
    alive: Iterable[BrokerId] = (),
) -> operations.Program[ClusterView]:
    """Reads the nodes that decisions about topics depend on: the brokers, the topics, and the configuration of both.

    Args:
        settings: on which decisions depend, too.
        topics: those that exist are in the view.
        brokers: names of brokers whose configuration matters, besides the default and this broker's own.
        alive: brokers that count as registered, as an administrator may name replicas on those that are down.
    """
    image = MetadataImage()

    def add(record: records.Record) -> None:
        image.replay(record, offset=image.next_offset)

    registered = yield from read_brokers(is_watched=False)
    racks = {**dict.fromkeys(alive, ""), **{broker_id: each.rack for broker_id, each in registered.items()}}
    for broker_id, rack in sorted(racks.items()):
        add(_registration(broker_id, rack))
    for topic in filter(is_legal, topics):
        (answer,) = yield (operations.GetData(path=paths.topic_node(topic)),)
        if isinstance(answer, operations.DataRead):
            content = decode_topic(answer.data, topic_format=settings.rules.topic_format)
            for record in _topic_records(topic, content):
                add(record)
            yield from _read_config(add, ConfigResource.TOPIC, topic)
    for broker in dict.fromkeys((CLUSTER, str(settings.node_id), *filter(str.isdecimal, brokers))):
        yield from _read_config(add, ConfigResource.BROKER, broker)
    return ClusterView(
        image=image, properties=settings.properties, switches=settings.switches, node_id=settings.node_id
    )


def _registration(broker_id: BrokerId, rack: str) -> records.RegisterBrokerRecord:
    return records.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=IncarnationId(""),
        broker_epoch=BrokerEpoch(-1),
        log_dirs=(),
        fenced=False,
        rack=rack,
    )


def _topic_records(topic: str, content: TopicAssignment) -> Iterable[records.Record]:
    if 0 not in content.partitions:
        raise MalformedNodeError(what="topic", reason=f"{topic} has no partition 0")
    # A topic of a release without ids is found by its name alone.
    topic_id = content.topic_id or TopicId(topic)
    yield records.TopicRecord(name=topic, topic_id=topic_id)
    for partition, assignment in sorted(content.partitions.items()):
        yield records.PartitionRecord(
            topic_id=topic_id,
            partition=partition,
            replicas=assignment.replicas,
            isr=assignment.replicas,
            leader=assignment.replicas[0] if assignment.replicas else None,
            adding_replicas=assignment.adding,
            removing_replicas=assignment.removing,
        )


def _read_config(
    add: Callable[[records.Record], None], resource: ConfigResource, resource_name: str
) -> operations.Program[None]:
    (answer,) = yield (operations.GetData(path=config_node(resource, resource_name)),)
    config = decode_config(answer.data) if isinstance(answer, operations.DataRead) else {}
    for name, value in sorted(config.items()):
        add(records.ConfigRecord(resource=resource, resource_name=resource_name, name=name, value=value))

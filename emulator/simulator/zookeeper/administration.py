"""What administrators write into ZooKeeper: topics, configurations, deletions (``kafka-topics --zookeeper``).

The nodes are those that Kafka's tools write, past every broker; the controller sees them by its watches. Elections and
reassignments are asked of the controller instead. A topic is refused without replicas: nobody here places them.
"""

from typing import Final, TypeAlias

from emulator.core.admin_messages import (
    AlterConfigsResource,
    ConfigOperation,
    ConfigResourceResult,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    TopicResult,
)
from emulator.core.errors import ErrorCode
from emulator.core.types import ConfigResource
from emulator.core.zookeeper.identifiers import SessionId
from emulator.core.zookeeper.nodes import paths
from emulator.core.zookeeper.nodes.small_nodes import decode_config, encode_config
from emulator.core.zookeeper.nodes.topic import ReplicaAssignment, TopicAssignment, encode_topic
from emulator.core.zookeeper.operations import Create, Delete, SetData, Step, failure
from emulator.core.zookeeper.server import ZooKeeperServer
from emulator.core.zookeeper_rules import ZooKeeperRules

AdministratorRequest: TypeAlias = CreateTopicsRequest | DeleteTopicsRequest | IncrementalAlterConfigsRequest
AdministratorResponse: TypeAlias = CreateTopicsResponse | DeleteTopicsResponse | IncrementalAlterConfigsResponse

_ENDLESS_MS: Final = 1 << 60
_DEFAULT_BROKER: Final = "<default>"


class ZooKeeperAdministrator:
    """A client of the server that never expires.

    Args:
        server: where it writes.
        rules: of the cluster, which decide how nodes are written.
    """

    def __init__(self, server: ZooKeeperServer, rules: ZooKeeperRules) -> None:
        self._server = server
        self._rules = rules
        self._session_id: SessionId = server.open_session(timeout_ms=_ENDLESS_MS, now_ms=0)

    def handle(self, request: AdministratorRequest) -> AdministratorResponse:
        """Writes what is asked for; returns what came of each subject, in order."""
        match request:
            case CreateTopicsRequest(topics=topics):
                return CreateTopicsResponse(topics=tuple(map(self._create, topics)))
            case DeleteTopicsRequest(topics=names):
                return DeleteTopicsResponse(topics=tuple(map(self._delete, names)))
            case IncrementalAlterConfigsRequest(resources=resources):
                return IncrementalAlterConfigsResponse(resources=tuple(map(self._configure, resources)))

    def _write(self, *steps: Step) -> bool:
        """Executes steps; returns whether all did something."""
        return not any(failure(answer) for answer in self._server.execute(self._session_id, steps))

    def _create(self, topic: CreatableTopic) -> TopicResult:
        if not topic.assignments:
            return TopicResult(
                name=topic.name, error=ErrorCode.INVALID_REPLICA_ASSIGNMENT, error_message="its replicas are not named"
            )
        partitions = {number: ReplicaAssignment(replicas=replicas) for number, replicas in enumerate(topic.assignments)}
        content = TopicAssignment(topic_id=topic.topic_id, partitions=partitions)
        data = encode_topic(content, topic_format=self._rules.topic_format)
        if self._server.stat(paths.topic_node(topic.name)) is None:
            self._write(Delete(path=paths.topic_config_node(topic.name), version=None))
            self._write(Create(path=paths.topic_config_node(topic.name), data=encode_config(dict(topic.configs))))
        is_made = self._write(Create(path=paths.topic_node(topic.name), data=data))
        error = ErrorCode.NONE if is_made else ErrorCode.TOPIC_ALREADY_EXISTS
        return TopicResult(name=topic.name, error=error)

    def _delete(self, topic: str) -> TopicResult:
        if self._server.stat(paths.topic_node(topic)) is None:
            return TopicResult(name=topic, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._write(Create(path=paths.delete_topic_node(topic)))  # asked for again, it is there already
        return TopicResult(name=topic, error=ErrorCode.NONE)

    def _configure(self, resource: AlterConfigsResource) -> ConfigResourceResult:
        if resource.resource is ConfigResource.TOPIC:
            path = paths.topic_config_node(resource.resource_name)
        else:
            path = paths.broker_config_node(resource.resource_name or _DEFAULT_BROKER)
        data = self._server.data(path)
        config = {} if data is None else decode_config(data)
        for change in resource.configs:
            config.pop(change.name, None)
            if change.operation is not ConfigOperation.DELETE and change.value is not None:
                config[change.name] = change.value
        content = encode_config(config)
        self._write(Create(path=path, data=content) if data is None else SetData(path=path, data=content, version=None))
        return ConfigResourceResult(
            resource=resource.resource, resource_name=resource.resource_name, error=ErrorCode.NONE
        )

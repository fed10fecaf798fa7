"""Requests of administrators: one method per request, one outcome per thing asked for.

Decisions come from their own modules; here a request is taken apart, each decision committed before the next is made,
and the answer put together. With ``validate_only`` decisions are made and dropped.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never

from laststand.emulator.core.admin_messages import (
    AdminRequest,
    AdminResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ConfigResourceResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedBroker,
    DescribeFeaturesRequest,
    DescribeFeaturesResponse,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionResult,
    ReassignablePartition,
    TopicResult,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from laststand.emulator.core.controller.config_requests import alter_config_resource, describe_config_resource
from laststand.emulator.core.controller.configs import ConfigOutcome
from laststand.emulator.core.controller.decision import Decision
from laststand.emulator.core.controller.features import describe_features, update_features
from laststand.emulator.core.controller.fencing import unregister_broker
from laststand.emulator.core.controller.reassignment import (
    ReassignOutcome,
    ReplicationFactorChange,
    cancel_reassignment,
    ongoing_reassignments,
    reassign_partition,
)
from laststand.emulator.core.controller.sessions import SessionTracker
from laststand.emulator.core.controller.topics import TopicOutcome, add_partitions, create_topic, delete_topic
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.types import TopicPartition

Commit: TypeAlias = Callable[[Sequence[Decision]], None]
"""Replays decisions at once, so that the view shows them."""


class AdminHandler:
    """Answers administrators.

    Args:
        view: what decisions look at.
        sessions: what brokers said of themselves.
        cluster_id: the cluster's.
    """

    def __init__(self, view: ClusterView, sessions: SessionTracker, *, cluster_id: str) -> None:
        self._view = view
        self._sessions = sessions
        self._cluster_id = cluster_id

    def answer(self, request: AdminRequest, commit: Commit) -> AdminResponse:
        """Returns the answer, with everything that the request changes committed."""
        match request:
            case CreateTopicsRequest():
                return self._create_topics(request, commit)
            case DeleteTopicsRequest():
                return self._delete_topics(request, commit)
            case CreatePartitionsRequest():
                return self._create_partitions(request, commit)
            case AlterPartitionReassignmentsRequest():
                return self._reassign(request, commit)
            case ListPartitionReassignmentsRequest():
                return self._list_reassignments(request)
            case IncrementalAlterConfigsRequest():
                return self._alter_configs(request, commit)
            case DescribeConfigsRequest():
                described = [describe_config_resource(self._view, asked) for asked in request.resources]
                return DescribeConfigsResponse(resources=tuple(described))
            case UpdateFeaturesRequest():
                return self._update_features(request, commit)
            case DescribeFeaturesRequest():
                features = describe_features(self._view.image, self._view.switches)
                return DescribeFeaturesResponse(error=ErrorCode.NONE, features=features)
            case UnregisterBrokerRequest():
                return self._unregister(request, commit)
            case DescribeClusterRequest():
                return self._describe_cluster()
            case ElectLeadersRequest():
                raise InvariantError("elections are the election handler's")
            case _:
                assert_never(request)

    # --- Topics ---------------------------------------------------------------------------------------------------

    def _create_topics(self, request: CreateTopicsRequest, commit: Commit) -> CreateTopicsResponse:
        names = [topic.name for topic in request.topics]
        results = []
        for topic in request.topics:
            outcome = _duplicate(topic.name, names) or create_topic(self._view, topic)
            commit(outcome.decisions)
            results.append(_topic_result(topic.name, outcome))
        return CreateTopicsResponse(topics=tuple(results))

    def _delete_topics(self, request: DeleteTopicsRequest, commit: Commit) -> DeleteTopicsResponse:
        results = []
        for name in request.topics:
            outcome = _duplicate(name, request.topics) or delete_topic(self._view, name)
            commit(outcome.decisions)
            results.append(_topic_result(name, outcome))
        return DeleteTopicsResponse(topics=tuple(results))

    def _create_partitions(self, request: CreatePartitionsRequest, commit: Commit) -> CreatePartitionsResponse:
        names = [topic.name for topic in request.topics]
        results = []
        for topic in request.topics:
            outcome = _duplicate(topic.name, names) or add_partitions(self._view, topic)
            if not request.validate_only:
                commit(outcome.decisions)
            results.append(_topic_result(topic.name, outcome))
        return CreatePartitionsResponse(topics=tuple(results))

    # --- Partitions -----------------------------------------------------------------------------------------------

    def _reassign(
        self, request: AlterPartitionReassignmentsRequest, commit: Commit
    ) -> AlterPartitionReassignmentsResponse:
        is_allowed = request.allow_replication_factor_change
        factor_change = ReplicationFactorChange.ALLOWED if is_allowed else ReplicationFactorChange.FORBIDDEN
        results = []
        for asked in request.partitions:
            outcome = self._reassign_one(asked, factor_change)
            commit(outcome.decisions)
            results.append(_partition_result(asked.topic_partition, outcome.error, outcome.message))
        return AlterPartitionReassignmentsResponse(error=ErrorCode.NONE, partitions=tuple(results))

    def _reassign_one(self, asked: ReassignablePartition, factor_change: ReplicationFactorChange) -> ReassignOutcome:
        partition = asked.topic_partition
        if asked.replicas is None:
            return cancel_reassignment(self._view, partition)
        return reassign_partition(self._view, partition, asked.replicas, factor_change=factor_change)

    def _list_reassignments(self, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
        asked = None if request.partitions is None else [TopicPartition(*name) for name in request.partitions]
        found = ongoing_reassignments(self._view, asked)
        return ListPartitionReassignmentsResponse(error=ErrorCode.NONE, partitions=found)

    # --- Configuration and features -------------------------------------------------------------------------------

    def _alter_configs(
        self, request: IncrementalAlterConfigsRequest, commit: Commit
    ) -> IncrementalAlterConfigsResponse:
        names = [(asked.resource, asked.resource_name) for asked in request.resources]
        results = []
        for asked in request.resources:
            if names.count((asked.resource, asked.resource_name)) > 1:
                outcome = ConfigOutcome(error=ErrorCode.INVALID_REQUEST, message="the request names a resource twice")
            else:
                outcome = alter_config_resource(self._view, asked)
            if not request.validate_only:
                commit(outcome.decisions)
            results.append(
                ConfigResourceResult(
                    resource=asked.resource,
                    resource_name=asked.resource_name,
                    error=outcome.error,
                    error_message=outcome.message,
                )
            )
        return IncrementalAlterConfigsResponse(resources=tuple(results))

    def _update_features(self, request: UpdateFeaturesRequest, commit: Commit) -> UpdateFeaturesResponse:
        view = self._view
        outcome = update_features(
            view.image,
            view.properties,
            view.switches,
            request.feature_updates,
            is_left_over_ignored=view.partition_rules().downgrade_ignores_elr,
        )
        if not request.validate_only:
            commit(outcome.decisions)
        return UpdateFeaturesResponse(error=outcome.error, error_message=outcome.message)

    # --- Brokers --------------------------------------------------------------------------------------------------

    def _unregister(self, request: UnregisterBrokerRequest, commit: Commit) -> UnregisterBrokerResponse:
        outcome = unregister_broker(self._view, request.broker_id)
        commit(outcome.decisions)
        return UnregisterBrokerResponse(error=outcome.error, error_message=outcome.message)

    def _describe_cluster(self) -> DescribeClusterResponse:
        image = self._view.image
        brokers = [broker for _, broker in sorted(image.brokers.items())]
        applied = self._sessions.applied_offsets(broker.broker_id for broker in brokers)
        return DescribeClusterResponse(
            error=ErrorCode.NONE,
            cluster_id=self._cluster_id,
            controller_id=self._view.node_id,
            metadata_end_offset=image.next_offset,
            brokers=tuple(
                DescribedBroker(
                    broker_id=broker.broker_id,
                    broker_epoch=broker.broker_epoch,
                    incarnation_id=broker.incarnation_id,
                    is_fenced=broker.fenced,
                    in_controlled_shutdown=broker.in_controlled_shutdown,
                    applied_offset=offset,
                )
                for broker, offset in zip(brokers, applied, strict=True)
            ),
        )


def _duplicate(name: str, names: Sequence[str]) -> TopicOutcome | None:
    if names.count(name) == 1:
        return None
    return TopicOutcome(error=ErrorCode.INVALID_REQUEST, message=f"the request names topic {name!r} twice")


def _topic_result(name: str, outcome: TopicOutcome) -> TopicResult:
    return TopicResult(name=name, error=outcome.error, error_message=outcome.message)


def _partition_result(partition: TopicPartition, error: ErrorCode, message: str) -> PartitionResult:
    return PartitionResult(topic=partition.topic, partition=partition.partition, error=error, error_message=message)

"""Requests of administrators: one method per request, one outcome per thing asked for.

Decisions come from their own modules; here a request is taken apart, each decision committed before the next is made,
and the answer put together. With ``validate_only`` decisions are made and dropped.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, assert_never

from laststand.emulator.core import admin_messages
from laststand.emulator.core.controller.acls import create_acl, delete_acls, describe_acls
from laststand.emulator.core.controller.client_quotas import alter_quotas, quota_problems, result_of
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

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
"""Partitions that one request may make (Kafka's ``MAX_PARTITIONS_PER_BATCH``, and ``MAX_RECORDS_PER_USER_OP``)."""


class AdminHandler:
    """Answers administrators.

    Args:
        view: the input of decisions.
        sessions: the brokers' reports about themselves.
        cluster_id: the cluster's.
    """

    def __init__(self, view: ClusterView, sessions: SessionTracker, *, cluster_id: str) -> None:
        self._view = view
        self._sessions = sessions
        self._cluster_id = cluster_id

    def answer(self, request: admin_messages.AdminRequest, commit: Commit) -> admin_messages.AdminResponse:
        """Returns the answer, with everything that the request changes committed."""
        match request:
            case admin_messages.CreateTopicsRequest():
                return self._create_topics(request, commit)
            case admin_messages.DeleteTopicsRequest():
                return self._delete_topics(request, commit)
            case admin_messages.CreatePartitionsRequest():
                return self._create_partitions(request, commit)
            case admin_messages.AlterPartitionReassignmentsRequest():
                return self._reassign(request, commit)
            case admin_messages.ListPartitionReassignmentsRequest():
                return self._list_reassignments(request)
            case admin_messages.IncrementalAlterConfigsRequest():
                return self._alter_configs(request, commit)
            case admin_messages.DescribeConfigsRequest():
                described = [describe_config_resource(self._view, asked) for asked in request.resources]
                return admin_messages.DescribeConfigsResponse(resources=tuple(described))
            case admin_messages.UpdateFeaturesRequest():
                return self._update_features(request, commit)
            case admin_messages.DescribeFeaturesRequest():
                features = describe_features(self._view.image, self._view.switches)
                return admin_messages.DescribeFeaturesResponse(error=ErrorCode.NONE, features=features)
            case admin_messages.UnregisterBrokerRequest():
                return self._unregister(request, commit)
            case admin_messages.DescribeClusterRequest():
                return self._describe_cluster()
            case admin_messages.CreateAclsRequest():
                return self._create_acls(request, commit)
            case admin_messages.DescribeAclsRequest():
                return describe_acls(self._view, request.filter)
            case admin_messages.DeleteAclsRequest():
                return self._delete_acls(request, commit)
            case admin_messages.AlterClientQuotasRequest():
                return self._alter_client_quotas(request, commit)
            case admin_messages.ElectLeadersRequest():
                raise InvariantError("elections are the election handler's")
            case _:
                assert_never(request)

    # --- Topics ---------------------------------------------------------------------------------------------------

    def _create_topics(
        self, request: admin_messages.CreateTopicsRequest, commit: Commit
    ) -> admin_messages.CreateTopicsResponse:
        names = [topic.name for topic in request.topics]
        results = []
        refused = self._excess(request)
        for topic in request.topics:
            outcome = refused or _duplicate(topic.name, names) or create_topic(self._view, topic)
            if not request.validate_only:
                commit(outcome.decisions)
            results.append(_topic_result(topic.name, outcome))
        return admin_messages.CreateTopicsResponse(topics=tuple(results))

    def _excess(self, request: admin_messages.CreateTopicsRequest) -> TopicOutcome | None:
        default = self._view.properties.num_partitions
        total = sum(len(topic.assignments) or topic.num_partitions or default for topic in request.topics)
        if total <= PARTITIONS_PER_REQUEST_MAX:
            return None
        message = f"Excessively large number of partitions per request: {total}"
        return TopicOutcome(error=ErrorCode.POLICY_VIOLATION, message=message)

    def _delete_topics(
        self, request: admin_messages.DeleteTopicsRequest, commit: Commit
    ) -> admin_messages.DeleteTopicsResponse:
        results = []
        for name in request.topics:
            outcome = _duplicate(name, request.topics) or delete_topic(self._view, name)
            commit(outcome.decisions)
            results.append(_topic_result(name, outcome))
        return admin_messages.DeleteTopicsResponse(topics=tuple(results))

    def _create_partitions(
        self, request: admin_messages.CreatePartitionsRequest, commit: Commit
    ) -> admin_messages.CreatePartitionsResponse:
        names = [topic.name for topic in request.topics]
        results = []
        refused = self._excess_of_new(request)
        for topic in request.topics:
            outcome = refused or _duplicate(topic.name, names) or add_partitions(self._view, topic)
            if not request.validate_only:
                commit(outcome.decisions)
            results.append(_topic_result(topic.name, outcome))
        return admin_messages.CreatePartitionsResponse(topics=tuple(results))

    def _excess_of_new(self, request: admin_messages.CreatePartitionsRequest) -> TopicOutcome | None:
        image = self._view.image
        known = [topic for topic in request.topics if topic.name in image.topics]
        added = sum(max(0, topic.count - len(image.partitions_of(topic.name))) for topic in known)
        if added <= PARTITIONS_PER_REQUEST_MAX:
            return None
        message = "Unable to perform excessively large batch operation."
        return TopicOutcome(error=ErrorCode.POLICY_VIOLATION, message=message)

    # --- Partitions -----------------------------------------------------------------------------------------------

    def _reassign(
        self, request: admin_messages.AlterPartitionReassignmentsRequest, commit: Commit
    ) -> admin_messages.AlterPartitionReassignmentsResponse:
        is_allowed = request.allow_replication_factor_change
        factor_change = ReplicationFactorChange.ALLOWED if is_allowed else ReplicationFactorChange.FORBIDDEN
        results = []
        for asked in request.partitions:
            outcome = self._reassign_one(asked, factor_change)
            commit(outcome.decisions)
            results.append(_partition_result(asked.topic_partition, outcome.error, outcome.message))
        return admin_messages.AlterPartitionReassignmentsResponse(error=ErrorCode.NONE, partitions=tuple(results))

    def _reassign_one(
        self, asked: admin_messages.ReassignablePartition, factor_change: ReplicationFactorChange
    ) -> ReassignOutcome:
        partition = asked.topic_partition
        if asked.replicas is None:
            return cancel_reassignment(self._view, partition)
        return reassign_partition(self._view, partition, asked.replicas, factor_change=factor_change)

    def _list_reassignments(
        self, request: admin_messages.ListPartitionReassignmentsRequest
    ) -> admin_messages.ListPartitionReassignmentsResponse:
        asked = None if request.partitions is None else [TopicPartition(*name) for name in request.partitions]
        found = ongoing_reassignments(self._view, asked)
        return admin_messages.ListPartitionReassignmentsResponse(error=ErrorCode.NONE, partitions=found)

    # --- Configuration and features -------------------------------------------------------------------------------

    def _alter_configs(
        self, request: admin_messages.IncrementalAlterConfigsRequest, commit: Commit
    ) -> admin_messages.IncrementalAlterConfigsResponse:
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
                admin_messages.ConfigResourceResult(
                    resource=asked.resource,
                    resource_name=asked.resource_name,
                    error=outcome.error,
                    error_message=outcome.message,
                )
            )
        return admin_messages.IncrementalAlterConfigsResponse(resources=tuple(results))

    def _update_features(
        self, request: admin_messages.UpdateFeaturesRequest, commit: Commit
    ) -> admin_messages.UpdateFeaturesResponse:
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
        return admin_messages.UpdateFeaturesResponse(error=outcome.error, error_message=outcome.message)

    # --- Access control lists -------------------------------------------------------------------------------------

    def _create_acls(
        self, request: admin_messages.CreateAclsRequest, commit: Commit
    ) -> admin_messages.CreateAclsResponse:
        results = []
        for entry in request.acls:
            outcome = create_acl(self._view, entry)
            commit(outcome.decisions)
            results.append(admin_messages.AclResult(error=outcome.error, error_message=outcome.message))
        return admin_messages.CreateAclsResponse(results=tuple(results))

    def _delete_acls(
        self, request: admin_messages.DeleteAclsRequest, commit: Commit
    ) -> admin_messages.DeleteAclsResponse:
        results = []
        for asked in request.filters:
            outcome = delete_acls(self._view, asked)
            commit(outcome.decisions)
            results.append(
                admin_messages.DeletedAcls(error=outcome.error, error_message=outcome.message, acls=outcome.acls)
            )
        return admin_messages.DeleteAclsResponse(results=tuple(results))

    # --- Quotas of clients ----------------------------------------------------------------------------------------

    def _alter_client_quotas(
        self, request: admin_messages.AlterClientQuotasRequest, commit: Commit
    ) -> admin_messages.AlterClientQuotasResponse:
        problems = quota_problems(request.entries)
        for entry, problem in zip(request.entries, problems, strict=True):
            if not problem and not request.validate_only:
                commit([*alter_quotas(self._view, entry)])
        return admin_messages.AlterClientQuotasResponse(results=tuple(map(result_of, problems)))

    # --- Brokers --------------------------------------------------------------------------------------------------

    def _unregister(
        self, request: admin_messages.UnregisterBrokerRequest, commit: Commit
    ) -> admin_messages.UnregisterBrokerResponse:
        outcome = unregister_broker(self._view, request.broker_id)
        commit(outcome.decisions)
        return admin_messages.UnregisterBrokerResponse(error=outcome.error, error_message=outcome.message)

    def _describe_cluster(self) -> admin_messages.DescribeClusterResponse:
        image = self._view.image
        brokers = [broker for _, broker in sorted(image.brokers.items())]
        applied = self._sessions.applied_offsets(broker.broker_id for broker in brokers)
        return admin_messages.DescribeClusterResponse(
            error=ErrorCode.NONE,
            cluster_id=self._cluster_id,
            controller_id=self._view.node_id,
            metadata_end_offset=image.next_offset,
            brokers=tuple(
                admin_messages.DescribedBroker(
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


def _topic_result(name: str, outcome: TopicOutcome) -> admin_messages.TopicResult:
    return admin_messages.TopicResult(name=name, error=outcome.error, error_message=outcome.message)


def _partition_result(partition: TopicPartition, error: ErrorCode, message: str) -> admin_messages.PartitionResult:
    return admin_messages.PartitionResult(
        topic=partition.topic, partition=partition.partition, error=error, error_message=message
    )

"""The admin client: typed methods over the requests of administrators.

A method about one subject returns its result or raises ``AdminError``; a method about many returns one result each, in
the order of the request, and raises only if the request as a whole was refused. Large requests are split where Kafka's
limits require it: ElectLeaders by partitions, DescribeTopicPartitions by topics and then page by page along its cursor
(KIP-966).

How requests travel is the caller's: ``ask`` is ``AdminConnection.ask`` for processes, and any coroutine function of
that shape elsewhere.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias, TypeVar, cast

import msgspec

from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.acls import AccessControlEntry, AclFilter
from laststand.emulator.core.controller.elect_leaders import election_requests
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.quorum.messages import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    VoterChangeResponse,
)
from laststand.emulator.core.quorum.voter_set import ReplicaKey
from laststand.emulator.core.types import BrokerId, ConfigResource, NodeId, Offset, TopicId, TopicPartition

Ask: TypeAlias = Callable[[NodeId, messages.Request], Awaitable[messages.Response]]
"""Sends a request to a node and returns its answer, or raises ``AdminError``."""

ResponseT = TypeVar("ResponseT")

DESCRIBED_TOPICS_MAX: Final = 2000
"""Topics of one DescribeTopicPartitions request, and partitions of one answer (Kafka's default)."""

DELETE_RECORDS_TIMEOUT_MS: Final = 4_000
"""Time for which a leader waits for its followers; a follower in touch needs a single fetch."""

REPLICA_LOG_INFO_MAX: Final = 1000
"""Partitions of one GetReplicaLogInfo request (KIP-966)."""


class Effort(Enum):
    """The extent of a change: made, or only checked."""

    APPLY = "apply"
    VALIDATE_ONLY = "validate_only"


class AdminClient:
    """An administrator of one cluster.

    Args:
        ask: sends a request and returns the answer.
        controller_id: node id of the controller.
    """

    def __init__(self, ask: Ask, *, controller_id: NodeId) -> None:
        self._ask = ask
        self._controller_id = controller_id

    # --- Topics ---------------------------------------------------------------------------------------------------

    async def create_topic(self, topic: admin_messages.CreatableTopic) -> None:
        """Creates a topic.

        Raises:
            AdminError: it was refused, or no answer came.
        """
        response = await self._controller(
            admin_messages.CreateTopicsRequest(topics=(topic,)), admin_messages.CreateTopicsResponse
        )
        _raise_topic_errors("CreateTopics", response.topics)

    async def delete_topic(self, name: str) -> None:
        """Deletes a topic.

        Raises:
            AdminError: it was refused, or no answer came.
        """
        response = await self._controller(
            admin_messages.DeleteTopicsRequest(topics=(name,)), admin_messages.DeleteTopicsResponse
        )
        _raise_topic_errors("DeleteTopics", response.topics)

    async def create_partitions(
        self, topic: admin_messages.CreatablePartitions, *, effort: Effort = Effort.APPLY
    ) -> None:
        """Adds partitions to a topic.

        Raises:
            AdminError: it was refused, or no answer came.
        """
        request = admin_messages.CreatePartitionsRequest(topics=(topic,), validate_only=effort is Effort.VALIDATE_ONLY)
        response = await self._controller(request, admin_messages.CreatePartitionsResponse)
        _raise_topic_errors("CreatePartitions", response.topics)

    async def describe_topics(
        self,
        names: Sequence[str] | None = None,
        *,
        node_id: NodeId | None = None,
        page_size: int = DESCRIBED_TOPICS_MAX,
    ) -> tuple[messages.DescribedTopic, ...]:
        """Returns topics by name, each with all its partitions; a topic that does not exist has an error of its own.

        Pages may show different moments.

        Args:
            names: topics; ``None`` for all.
            node_id: the node whose metadata is asked for; ``None`` for the controller.
            page_size: maximal number of partitions in one response; the node may have a lower limit.

        Raises:
            AdminError: no answer came.
        """
        asked = self._controller_id if node_id is None else node_id
        if names is None:
            return await self._describe_pages(asked, (), page_size)
        wanted = sorted(set(names))
        pieces = [wanted[start : start + DESCRIBED_TOPICS_MAX] for start in range(0, len(wanted), DESCRIBED_TOPICS_MAX)]
        found: list[messages.DescribedTopic] = []
        for piece in pieces:
            found += await self._describe_pages(asked, tuple(piece), page_size)
        return tuple(found)

    async def _describe_pages(
        self, node_id: NodeId, names: tuple[str, ...], page_size: int
    ) -> tuple[messages.DescribedTopic, ...]:
        found: dict[str, messages.DescribedTopic] = {}
        cursor: messages.TopicCursor | None = None
        while True:
            request = messages.DescribeTopicPartitionsRequest(
                topics=names, cursor=cursor, response_partition_limit=page_size
            )
            page = await self._of(node_id, request, messages.DescribeTopicPartitionsResponse)
            if page.error is not ErrorCode.NONE:
                raise AdminError(api="DescribeTopicPartitions", error=page.error)
            for topic in page.topics:
                found[topic.name] = _joined(found.get(topic.name), topic)
            if page.next_cursor is None:
                return tuple(found.values())
            cursor = page.next_cursor

    # --- Partitions -----------------------------------------------------------------------------------------------

    async def elect_leaders(
        self, election: admin_messages.RequestedElection, partitions: Sequence[admin_messages.ElectablePartition] | None
    ) -> tuple[admin_messages.PartitionResult, ...]:
        """Elects leaders.

        Args:
            election: of which kind.
            partitions: ``None`` for all; then those that need no election are not in the answer.

        Raises:
            AdminError: the request as a whole was refused, or no answer came.
        """
        if partitions is None:
            request = admin_messages.ElectLeadersRequest(election_type=election.value, partitions=None)
            results = list(await self._elect(request))
            # REQUEST_LIMIT_REACHED is retriable: those partitions were not looked at (KIP-966, "New Errors").
            beyond = [each for each in results if each.error is ErrorCode.REQUEST_LIMIT_REACHED]
            results = [each for each in results if each.error is not ErrorCode.REQUEST_LIMIT_REACHED]
            again = [admin_messages.ElectablePartition(topic=each.topic, partition=each.partition) for each in beyond]
            retried = await self._elect_in_pieces(election, again)
            return *results, *(each for each in retried if each.error is not ErrorCode.ELECTION_NOT_NEEDED)
        return tuple(await self._elect_in_pieces(election, partitions))

    async def _elect_in_pieces(
        self, election: admin_messages.RequestedElection, partitions: Sequence[admin_messages.ElectablePartition]
    ) -> list[admin_messages.PartitionResult]:
        results: list[admin_messages.PartitionResult] = []
        for request in election_requests(election.value, partitions):
            results += await self._elect(request)
        return results

    async def delete_records(
        self, offsets: Mapping[TopicPartition, Offset | None], leaders: Mapping[TopicPartition, BrokerId]
    ) -> tuple[messages.DeleteRecordsResult, ...]:
        """Raises the log starts of partitions; each leader is asked about its own.

        Args:
            offsets: the records below are deleted; ``None`` stands for the high watermark.
            leaders: of these partitions.

        Raises:
            AdminError: no answer came.
        """
        results: list[messages.DeleteRecordsResult] = []
        for leader in sorted({leaders[partition] for partition in offsets}):
            targets = tuple(
                messages.DeleteRecordsTarget(topic=partition.topic, partition=partition.partition, offset=offset)
                for partition, offset in offsets.items()
                if leaders[partition] == leader
            )
            request = messages.DeleteRecordsRequest(partitions=targets, timeout_ms=DELETE_RECORDS_TIMEOUT_MS)
            results += (await self._of(NodeId(leader), request, messages.DeleteRecordsResponse)).partitions
        return tuple(results)

    async def create_acls(self, entries: tuple[AccessControlEntry, ...]) -> None:
        """Adds access control entries.

        Raises:
            AdminError: one was refused, or no answer came.
        """
        request = admin_messages.CreateAclsRequest(acls=entries)
        for result in (await self._controller(request, admin_messages.CreateAclsResponse)).results:
            _raise_error("CreateAcls", result.error, result.error_message)

    async def describe_acls(self, asked: AclFilter) -> tuple[AccessControlEntry, ...]:
        """Returns the access control entries that a filter matches.

        Raises:
            AdminError: the request was refused, or no answer came.
        """
        request = admin_messages.DescribeAclsRequest(filter=asked)
        response = await self._controller(request, admin_messages.DescribeAclsResponse)
        _raise_error("DescribeAcls", response.error, response.error_message)
        return response.acls

    async def delete_acls(self, asked: AclFilter) -> tuple[AccessControlEntry, ...]:
        """Removes the access control entries that a filter matches, and returns them.

        Raises:
            AdminError: the request was refused, or no answer came.
        """
        request = admin_messages.DeleteAclsRequest(filters=(asked,))
        (result,) = (await self._controller(request, admin_messages.DeleteAclsResponse)).results
        _raise_error("DeleteAcls", result.error, result.error_message)
        return result.acls

    async def _elect(self, request: admin_messages.ElectLeadersRequest) -> tuple[admin_messages.PartitionResult, ...]:
        response = await self._controller(request, admin_messages.ElectLeadersResponse)
        _raise_error("ElectLeaders", response.error, response.error_message)
        return response.partitions

    async def reassign(
        self, targets: Mapping[TopicPartition, Sequence[BrokerId] | None]
    ) -> tuple[admin_messages.PartitionResult, ...]:
        """Starts reassignments, or cancels them where the target is ``None``.

        Raises:
            AdminError: the request as a whole was refused, or no answer came.
        """
        request = admin_messages.AlterPartitionReassignmentsRequest(
            partitions=tuple(
                admin_messages.ReassignablePartition(
                    topic=name.topic,
                    partition=name.partition,
                    replicas=None if replicas is None else tuple(replicas),
                )
                for name, replicas in targets.items()
            )
        )
        response = await self._controller(request, admin_messages.AlterPartitionReassignmentsResponse)
        _raise_error("AlterPartitionReassignments", response.error, response.error_message)
        return response.partitions

    async def list_reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[admin_messages.OngoingReassignment, ...]:
        """Returns the reassignments under way, of some partitions or (``None``) of all.

        Raises:
            AdminError: no answer came.
        """
        request = admin_messages.ListPartitionReassignmentsRequest(
            partitions=None if partitions is None else tuple(partitions)
        )
        response = await self._controller(request, admin_messages.ListPartitionReassignmentsResponse)
        _raise_error("ListPartitionReassignments", response.error, "")
        return response.partitions

    async def replica_log_info(
        self, broker_id: BrokerId, partitions: Sequence[tuple[TopicId, int]]
    ) -> tuple[messages.ReplicaLogInfo, ...]:
        """Returns a broker's log state of partitions: the last record's epoch, log end, high watermark (KIP-966).

        Raises:
            AdminError: no answer came.
        """
        found: list[messages.ReplicaLogInfo] = []
        for start in range(0, len(partitions), REPLICA_LOG_INFO_MAX):
            request = messages.GetReplicaLogInfoRequest(
                partitions=tuple(partitions[start : start + REPLICA_LOG_INFO_MAX])
            )
            found += (await self._of(broker_id, request, messages.GetReplicaLogInfoResponse)).partitions
        return tuple(found)

    # --- Configuration and features -------------------------------------------------------------------------------

    async def alter_configs(
        self,
        resource: ConfigResource,
        resource_name: str,
        changes: Sequence[admin_messages.AlterableConfig],
        *,
        effort: Effort = Effort.APPLY,
    ) -> None:
        """Changes dynamic configuration of a topic, a broker, or (a broker without a name) of the cluster.

        Raises:
            AdminError: it was refused, or no answer came.
        """
        asked = admin_messages.AlterConfigsResource(
            resource=resource, resource_name=resource_name, configs=tuple(changes)
        )
        request = admin_messages.IncrementalAlterConfigsRequest(
            resources=(asked,), validate_only=effort is Effort.VALIDATE_ONLY
        )
        [result] = (await self._controller(request, admin_messages.IncrementalAlterConfigsResponse)).resources
        subject = _resource_text(resource, resource_name)
        _raise_error("IncrementalAlterConfigs", result.error, result.error_message, subject=subject)

    async def describe_configs(
        self, resource: ConfigResource, resource_name: str, *, names: Sequence[str] | None = None
    ) -> tuple[admin_messages.DescribedConfig, ...]:
        """Returns the values in effect and their sources, by name; ``names`` restricts it.

        Raises:
            AdminError: it was refused, or no answer came.
        """
        asked = admin_messages.DescribeConfigsResource(
            resource=resource,
            resource_name=resource_name,
            configuration_keys=None if names is None else tuple(names),
        )
        request = admin_messages.DescribeConfigsRequest(resources=(asked,))
        [described] = (await self._controller(request, admin_messages.DescribeConfigsResponse)).resources
        subject = _resource_text(resource, resource_name)
        _raise_error("DescribeConfigs", described.error, described.error_message, subject=subject)
        return described.configs

    async def update_features(
        self, updates: Sequence[admin_messages.FeatureUpdate], *, effort: Effort = Effort.APPLY
    ) -> None:
        """Changes finalized features, all or none.

        Raises:
            AdminError: one of the changes is impossible, or no answer came.
        """
        request = admin_messages.UpdateFeaturesRequest(
            feature_updates=tuple(updates), validate_only=effort is Effort.VALIDATE_ONLY
        )
        response = await self._controller(request, admin_messages.UpdateFeaturesResponse)
        _raise_error("UpdateFeatures", response.error, response.error_message)

    async def describe_features(self) -> tuple[admin_messages.DescribedFeature, ...]:
        """Returns every feature by name.

        Raises:
            AdminError: no answer came.
        """
        response = await self._controller(
            admin_messages.DescribeFeaturesRequest(), admin_messages.DescribeFeaturesResponse
        )
        _raise_error("DescribeFeatures", response.error, "")
        return response.features

    # --- Brokers --------------------------------------------------------------------------------------------------

    async def describe_cluster(self) -> admin_messages.DescribeClusterResponse:
        """Returns the cluster's identity and its registered brokers.

        Raises:
            AdminError: no answer came.
        """
        response = await self._controller(
            admin_messages.DescribeClusterRequest(), admin_messages.DescribeClusterResponse
        )
        _raise_error("DescribeCluster", response.error, "")
        return response

    async def describe_quorum(self) -> DescribeQuorumResponse:
        """Returns what the leader of the quorum knows about all controllers.

        Raises:
            AdminError: no controller leads, or there is only one.
        """
        request = cast(messages.Request, DescribeQuorumRequest())
        response = await self._ask(self._controller_id, request)
        assert isinstance(response, DescribeQuorumResponse)
        _raise_error("DescribeQuorum", response.error, "")
        return response

    async def add_voter(self, voter: ReplicaKey) -> None:
        """Has the leader of several controllers add an observer that has caught up; returns once committed.

        Raises:
            AdminError: the leader refused; with REQUEST_TIMED_OUT, another change is undecided, or the observer lags.
        """
        await self._change_voters("AddRaftVoter", AddRaftVoterRequest(voter=voter, listener=""))

    async def remove_voter(self, voter: ReplicaKey) -> None:
        """Has the leader of several controllers remove a voter, itself perhaps; returns once committed.

        Raises:
            AdminError: the leader refused; with REQUEST_TIMED_OUT, another change is undecided.
        """
        await self._change_voters("RemoveRaftVoter", RemoveRaftVoterRequest(voter=voter))

    async def _change_voters(self, api: str, request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> None:
        response = await self._ask(self._controller_id, cast(messages.Request, request))
        assert isinstance(response, VoterChangeResponse)
        _raise_error(api, response.error, "", subject=f"controller {request.voter}")

    async def unregister_broker(self, broker_id: BrokerId) -> None:
        """Has the controller forget a broker.

        Raises:
            AdminError: it is not registered, or no answer came.
        """
        response = await self._controller(
            admin_messages.UnregisterBrokerRequest(broker_id=broker_id), admin_messages.UnregisterBrokerResponse
        )
        _raise_error("UnregisterBroker", response.error, response.error_message, subject=f"broker {broker_id}")

    # --- The way there --------------------------------------------------------------------------------------------

    async def _controller(self, request: messages.Request, expected: type[ResponseT]) -> ResponseT:
        return await self._of(self._controller_id, request, expected)

    async def _of(self, node_id: NodeId, request: messages.Request, expected: type[ResponseT]) -> ResponseT:
        response = await self._ask(node_id, request)
        assert isinstance(response, expected)
        return response


def _joined(before: messages.DescribedTopic | None, page: messages.DescribedTopic) -> messages.DescribedTopic:
    if before is None:
        return page
    return msgspec.structs.replace(before, partitions=before.partitions + page.partitions)


def _resource_text(resource: ConfigResource, resource_name: str) -> str:
    return f"{resource.value} {resource_name}" if resource_name else "the cluster default"


def _raise_error(api: str, error: ErrorCode, reason: str, *, subject: str = "") -> None:
    if error is not ErrorCode.NONE:
        raise AdminError(api=api, error=error, subject=subject, reason=reason)


def _raise_topic_errors(api: str, results: Sequence[admin_messages.TopicResult]) -> None:
    for result in results:
        _raise_error(api, result.error, result.error_message, subject=f"topic {result.name}")

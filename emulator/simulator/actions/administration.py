"""Sends administrators' requests to the nodes that serve them, without waiting for responses."""

from collections.abc import Iterable
from itertools import cycle
from typing import assert_never, cast

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.metadata_version import ELR_VERSION
from laststand.emulator.core.quorum.messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from laststand.emulator.core.types import ConfigResource, NodeId, TopicId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.lines import MIN_ISR
from laststand.emulator.plan.requests import permission_request, requests_of
from laststand.emulator.simulator.actions.targets import UNKNOWN_NODE, find_broker
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster


def administer(cluster: SimulatedCluster, action: actions.Administration) -> actions.Outcome:
    """Sends an administrator's requests past all links."""
    reason = _pointless(cluster, action)
    if reason is not None:
        return actions.no_op(reason)
    if isinstance(action, actions.DeleteRecords):
        return _ask_leader(cluster, action)
    cluster.administered += 1
    requests = requests_of(action, cluster.image, topic_id=_new_topic_id(cluster, action))
    # An action has as many requests as causes, or several of one kind.
    for request, cause in zip(requests, cycle(_causes(action)), strict=False):
        cluster.clients.ask(cluster.metadata_node.node_id, request, cause=cause)
    return actions.effective("asked the controller")


def change_permissions(
    cluster: SimulatedCluster, action: actions.Grant[NodeId] | actions.Revoke[NodeId]
) -> actions.Outcome:
    """Sends the request that adds or removes access control entries past all links."""
    request = permission_request(action)
    if isinstance(request, admin_messages.DeleteAclsRequest) and not any(
        cluster.image.acls.found(asked) for asked in request.filters
    ):
        return actions.no_op("there are no such entries")
    cluster.clients.ask(
        cluster.metadata_node.node_id, request, cause=f"{actions.spec_of(action).verb}-{action.operation}"
    )
    return actions.effective("asked the controller")


def change_voters(cluster: SimulatedCluster, action: actions.VoterChange[NodeId]) -> actions.Outcome:
    """Sends AddRaftVoter or RemoveRaftVoter past all links to the controller that was active last."""
    if not cluster.has_quorum:
        return actions.no_op("there is one controller")
    voter = cluster.voter(action.node)
    if isinstance(action, actions.AddVoter):
        replica = cluster.quorum_replica(action.node)
        if replica is None:
            return UNKNOWN_NODE
        if replica == voter:
            return actions.no_op("it is a voter")
        request: AddRaftVoterRequest | RemoveRaftVoterRequest = AddRaftVoterRequest(voter=replica, listener="")
    elif voter is None:
        return actions.no_op("it is no voter")
    else:
        replica, request = voter, RemoveRaftVoterRequest(voter=voter)
    cause = f"{actions.spec_of(action).line_verb}-{action.node}"
    cluster.clients.ask(cluster.metadata_node.node_id, cast(messages.Request, request), cause=cause)
    return actions.effective(f"asked the controller about {replica}")


def _ask_leader(cluster: SimulatedCluster, action: actions.DeleteRecords) -> actions.Outcome:
    state = cluster.state(action.partition)
    if state is None or state.leader is None:
        return actions.no_op(f"nobody leads {action.partition}")
    (request,) = requests_of(action, cluster.image, topic_id=state.topic_id)
    (cause,) = _causes(action)
    cluster.clients.ask(state.leader, request, cause=cause)
    return actions.effective(f"asked leader {state.leader}")


def _pointless(cluster: SimulatedCluster, action: actions.Administration) -> str | None:
    """Returns why a request can change nothing: its subject does not exist, or is already as requested."""
    image = cluster.image
    match action:
        case actions.CreateTopic():
            return None
        case actions.DeleteTopic(name=name) | actions.RecreateTopic(name=name) | actions.CreatePartitions(name=name):
            return None if name in image.topics else f"there is no topic {name}"
        case actions.AlterConfig(config=config):
            is_known = config.resource is not ConfigResource.TOPIC or config.name in image.topics
            return None if is_known else f"there is no topic {config.name}"
        case actions.ElectLeaders(partitions=partitions):
            return _missing_partition(cluster, partitions)
        case actions.CancelReassignment(partition=partition) | actions.DeleteRecords(partition=partition):
            return _missing_partition(cluster, (partition,))
        case actions.Reassign(partition=partition, replicas=replicas):
            if any(find_broker(cluster, broker_id) is None for broker_id in replicas):
                return "there is no such broker"
            return _missing_partition(cluster, (partition,))
        case actions.UpdateFeature(target=target):
            is_there = image.feature_level(target.feature) == target.level
            return f"{target.feature} is at level {target.level}" if is_there else None
        case actions.UnregisterBroker(broker_id=broker_id):
            return None if broker_id in image.brokers else f"broker {broker_id} is not registered"
        case _:
            assert_never(action)


def _missing_partition(cluster: SimulatedCluster, partitions: Iterable[TopicPartition]) -> str | None:
    missing = next((partition for partition in partitions if cluster.state(partition) is None), None)
    return None if missing is None else f"{missing} does not exist"


def _new_topic_id(cluster: SimulatedCluster, action: actions.Administration) -> TopicId:
    """Returns the id of a new topic: unique within a run, and the same in each replay of the plan."""
    match action:
        case actions.CreateTopic(topic=topic):
            name = topic.name
        case actions.RecreateTopic(name=name):
            pass
        case _:
            name = ""
    return TopicId(f"id-of-{name}-{cluster.administered}")


def _causes(action: actions.Administration) -> tuple[str, ...]:
    """Returns the cause ids of the events that each request leads to."""
    match action:
        case actions.CreateTopic(topic=topic):
            return (f"create-{topic.name}",)
        case actions.DeleteTopic(name=name):
            return (f"delete-{name}",)
        case actions.RecreateTopic(name=name):
            return (f"delete-{name}", f"create-{name}")
        case actions.CreatePartitions(name=name):
            return (f"create-partitions-{name}",)
        case actions.AlterConfig(config=config):
            is_min_isr = [name for name, _ in config.changes] == [MIN_ISR]
            return (f"{'min-isr' if is_min_isr else 'alter-config'}-{config.name}",)
        case actions.ElectLeaders():
            return ("elect-leaders",)
        case actions.Reassign(partition=partition) | actions.CancelReassignment(partition=partition):
            return (f"reassign-{partition}",)
        case actions.UpdateFeature(target=target):
            return (f"{'elr-feature' if target.feature == ELR_VERSION else target.feature}-{target.level}",)
        case actions.UnregisterBroker(broker_id=broker_id):
            return (f"unregister-{broker_id}",)
        case actions.DeleteRecords(partition=partition):
            return (f"delete-records-{partition}",)
        case _:
            assert_never(action)

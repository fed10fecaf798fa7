"""Performs actions on a simulated cluster. An action that is impossible at the moment is a no-op.

Therefore a plan stays playable while shrinking removes actions from it. Every action of
``laststand.emulator.plan.actions`` has a case here. ``took_effect`` says whether the cluster changed, ``affected``
whether there was anything to affect: a running process, or an open link to a running node.
"""

from typing import Final, assert_never

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.faults import EVERYTHING, fault_events
from laststand.emulator.plan.fields import TRANSACTIONAL, member_producer_name, transactional_name
from laststand.emulator.plan.machines import on_machines, together
from laststand.emulator.simulator.actions import on_links, on_nodes
from laststand.emulator.simulator.actions.administration import administer, change_permissions, change_voters
from laststand.emulator.simulator.actions.targets import on_brokers, on_each, on_processes
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster

_EFFECT: Final = "simulated"
"""The evidence of a fault's effect that the events of faults name."""


def perform_and_record(cluster: SimulatedCluster, action: actions.Action) -> actions.Outcome:
    """Performs an action, and writes the faults that it began and ended into the event log."""
    return together([(each, _perform_and_record(cluster, each)) for each in on_machines(action, cluster.machine_of)])


def _perform_and_record(cluster: SimulatedCluster, action: actions.Action) -> actions.Outcome:
    before, broken = cluster.committed_end_offset, cluster.network.broken
    begun_ns = cluster.event_log.now_ns
    outcome = perform(cluster, action)
    if outcome.took_effect:
        events = fault_events(
            action,
            effect=_EFFECT,
            cause_id=cluster.event_log.cause_id,
            before=before,
            after=cluster.committed_end_offset,
            broken=broken,
            begun_ns=begun_ns,
            proved_ns=cluster.event_log.now_ns,
        )
        for event in events:
            cluster.event_log.note(event)
    return outcome


def heal_and_record(cluster: SimulatedCluster) -> None:
    """Heals every link, and writes into the event log that every fault is over."""
    broken = sorted(cluster.network.broken)
    cluster.links.heal()
    now_ns = cluster.event_log.now_ns
    cluster.event_log.note(
        events.FaultHealed(
            cause_id=cluster.event_log.cause_id,
            fault=EVERYTHING.name,
            target=EVERYTHING.target,
            links=tuple(events.FaultLink(*link) for link in broken),
            seen=_EFFECT,
            metadata_offset=cluster.committed_end_offset,
            begun_ns=now_ns,
            proved_ns=now_ns,
        )
    )


def perform(cluster: SimulatedCluster, action: actions.Action) -> actions.Outcome:
    """Performs an action, and records nothing."""
    match action:
        case actions.Wait(duration_ms=duration_ms):
            cluster.run(duration_ms)  # even a wait of 0 ms delivers messages that are due now
            return actions.effective(f"{duration_ms} ms have passed")
        case actions.Produce():
            return _produce(cluster, action)
        case actions.Consume():
            return _consume(cluster, action)
        case actions.Member():
            return _member(cluster, action)
        case actions.Transact():
            return _transact(cluster, action)
        case actions.Kill(nodes=nodes):
            return on_processes(cluster, nodes, lambda node: on_nodes.kill(cluster, node))
        case actions.PowerLoss(nodes=nodes, loss=loss):
            return on_nodes.lose_power(cluster, nodes, loss)
        case actions.CrashWithin(nodes=nodes):
            return on_brokers(cluster, nodes, lambda node: on_nodes.arm_crash(cluster, node, action))
        case actions.ReplaceDisk(nodes=nodes):
            return on_processes(cluster, nodes, lambda node: on_nodes.replace_disk(cluster, node))
        case actions.LoseQuorumState(nodes=nodes):
            return on_processes(cluster, nodes, lambda node: on_nodes.lose_quorum_state(cluster, node))
        case actions.Start(nodes=nodes):
            # Controllers first: a broker whose disk is full ends at once, together with the controller in its process.
            in_order = sorted(nodes, key=lambda node_id: node_id in cluster.nodes)
            return on_processes(cluster, in_order, lambda node: on_nodes.start(cluster, node, action))
        case actions.Stop(nodes=nodes):
            return on_processes(cluster, nodes, lambda node: on_nodes.stop(cluster, node))
        case actions.Pause(nodes=nodes):
            return on_processes(cluster, nodes, lambda node: on_nodes.pause(cluster, node))
        case actions.Resume(nodes=nodes):
            return on_processes(cluster, nodes, lambda node: on_nodes.resume(cluster, node))
        case actions.DiskFull(nodes=nodes, left=left):
            room = None if action.is_repair else left
            return on_brokers(cluster, nodes, lambda node: on_nodes.limit_disk(cluster, node, room))
        case actions.SyncDisk(nodes=nodes):
            return on_brokers(cluster, nodes, lambda node: on_nodes.sync(cluster, node))
        case actions.ClockRate(nodes=nodes, rate_ppm=rate_ppm):
            return on_processes(cluster, nodes, lambda node: on_nodes.set_clock_rate(cluster, node, rate_ppm))
        case actions.ClockJump(nodes=nodes, by_ms=by_ms):
            return on_processes(cluster, nodes, lambda node: on_nodes.let_clock_jump(cluster, node, by_ms))
        case actions.Expire(nodes=nodes):
            return on_brokers(cluster, nodes, lambda node: on_nodes.expire(cluster, node))
        case actions.ExpireSession(nodes=nodes):
            return on_brokers(cluster, nodes, lambda node: on_nodes.expire_session(cluster, node))
        case actions.Grant() | actions.Revoke():
            return change_permissions(cluster, action)
        case actions.ExpireCertificate(nodes=nodes):
            return on_processes(cluster, nodes, lambda node: on_nodes.expire_certificate(cluster, node))
        case actions.RenewCertificate(nodes=nodes):
            return on_processes(cluster, nodes, lambda node: on_nodes.renew_certificate(cluster, node))
        case actions.DeposeController():
            return on_nodes.depose_controller(cluster)
        case actions.Draw(number=number):
            return _draw(cluster, number)
        case actions.Isolate(nodes=nodes):
            return on_each(nodes, lambda node_id: on_links.isolate(cluster, node_id, action))
        case actions.Cut(link=link):
            return on_links.cut(cluster, link)
        case actions.LoseResponses(link=link):
            return on_links.lose_responses(cluster, link)
        case actions.Reset(link=link):
            return on_links.reset(cluster, link)
        case actions.HalfOpen(link=link):
            return on_links.half_open(cluster, link)
        case actions.Flap():
            return on_links.flap(cluster, action)
        case (
            actions.Throttle()
            | actions.Slice()
            | actions.SlowDisk()
            | actions.LoseSyncs()
            | actions.DiskError()
            | actions.FlipBit()
            | actions.Disconnect()
            | actions.Connect()
        ):
            return actions.no_op(actions.spec_of(action).refused[DriverName.SIMULATOR])
        case actions.Slow(link=link, latency_ms=latency_ms, jitter_ms=jitter_ms, direction=direction):
            return on_links.slow(cluster, link, latency_ms, jitter_ms=jitter_ms, direction=direction)
        case actions.HealAll():
            return on_links.heal_all(cluster)
        case actions.HealNodes(nodes=nodes):
            return on_each(nodes, lambda node_id: on_links.heal_node(cluster, node_id))
        case actions.HealLink(link=link):
            return on_links.heal_link(cluster, link)
        case actions.Hold() | actions.Release() | actions.ReleaseNewest() | actions.LoseHeld() | actions.Duplicate():
            return on_links.on_messages(cluster, action)
        case actions.LoseNext() | actions.DuplicateNext() | actions.DelayMessages():
            return on_links.interfere(cluster, action)
        case (
            actions.CreateTopic()
            | actions.DeleteTopic()
            | actions.RecreateTopic()
            | actions.CreatePartitions()
            | actions.AlterConfig()
            | actions.ElectLeaders()
            | actions.Reassign()
            | actions.CancelReassignment()
            | actions.UpdateFeature()
            | actions.UnregisterBroker()
            | actions.DeleteRecords()
        ):
            return administer(cluster, action)
        case actions.AddVoter() | actions.RemoveVoter():
            return change_voters(cluster, action)
        case _:
            assert_never(action)


def _produce(cluster: SimulatedCluster, action: actions.Produce) -> actions.Outcome:
    producer = cluster.clients.producers.get(action.producer)
    if producer is None:
        return actions.no_op(f"there is no {action.producer}")
    if cluster.state(action.partition) is None or action.partition.topic in INTERNAL_TOPICS:
        return actions.no_op(f"{action.partition} does not exist, or is written by coordinators alone")
    return actions.effective(f"offered as {cluster.clients.produce(producer, action.partition, action.records)}")


_NO_PRODUCER: Final = actions.no_op("there is no transactional producer, as there is no topic __transaction_state")


def _transact(cluster: SimulatedCluster, action: actions.Transact) -> actions.Outcome:
    producer = cluster.clients.transactional_named(transactional_name(action.number))
    if producer is None:
        return _NO_PRODUCER
    missing = [name for name in action.partitions if cluster.state(name) is None]
    if missing:
        return actions.no_op(f"{missing[0]} does not exist")
    offered = cluster.clients.transact(producer, action.partitions, records=action.records, result=action.end.result)
    return actions.effective(f"offered as {offered}")


def _consume(cluster: SimulatedCluster, action: actions.Consume) -> actions.Outcome:
    producer, source = cluster.clients.transactional.get(TRANSACTIONAL), action.source
    if action.member is not None:
        member = cluster.clients.members.get((action.group, action.member))
        if member is None:
            return actions.no_op(f"{action.group} has no member {action.member}")
        name = member_producer_name(action.group, action.member)
        producer = cluster.clients.transactional_named(name, transactional_id=name)
        source = msgspec.structs.replace(source, member=member.process.member.identity)
    if producer is None:
        return _NO_PRODUCER
    named = (action.partition,) if action.into is None else (action.partition, action.into)
    missing = [name for name in named if cluster.state(name) is None]
    if missing:
        return actions.no_op(f"{missing[0]} does not exist")
    if action.into is None:
        offered = cluster.clients.consume(producer, source)
    else:
        offered = cluster.clients.transact(
            producer, (action.into,), records=action.records, result=action.end.result, source=source
        )
    return actions.effective(f"offered as {offered}")


def _member(cluster: SimulatedCluster, action: actions.Member) -> actions.Outcome:
    clients, does = cluster.clients, action.does
    node = clients.running_member(action.group, action.number)
    if does is actions.MemberDoes.JOIN:
        if node is not None:
            return actions.no_op(f"{node.name} runs")
        topics = tuple(sorted(topic for topic in cluster.image.topics if topic not in INTERNAL_TOPICS))
        if OFFSETS_TOPIC not in cluster.image.topics or not topics:
            return actions.no_op(f"there is no topic {OFFSETS_TOPIC}, or none to read")
        reads = action.reads is actions.MemberReads.ITSELF
        node = clients.add_member(action.group, action.number, is_static=action.is_static, topics=topics, reads=reads)
        return actions.effective(f"{node.name} joins")
    if node is None:
        return actions.no_op(f"member {action.number} of {action.group} does not run")
    is_paused = node.process.is_paused
    match does:
        case actions.MemberDoes.DIE:
            clients.abandon(node)
        case actions.MemberDoes.GO_ON if is_paused:
            clients.pause(node, is_paused=False)
        case actions.MemberDoes.PAUSE if not is_paused:
            clients.pause(node, is_paused=True)
        case actions.MemberDoes.LEAVE if not is_paused:
            clients.have_leave(node)
        case _:
            return actions.no_op(f"{node.name} is {'paused' if is_paused else 'not paused'}")
    return actions.effective(f"{node.name}: {does.value}")


def _draw(cluster: SimulatedCluster, number: int) -> actions.Outcome:
    if number < 0 or cluster.metadata_node.core is None:
        return actions.no_op("no controller runs" if number >= 0 else "there is no such draw")
    cluster.set_draw(number)
    return actions.effective(f"the controller draws {number}")

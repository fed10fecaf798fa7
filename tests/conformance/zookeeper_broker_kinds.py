"""Vectors about a broker that a ZooKeeper controller speaks to: roles, metadata, strays, a leader's own ISR writes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.fetcher import FetcherPool
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.isr import Committed, PendingExpand, PendingShrink, PendingState
from laststand.emulator.core.broker.replicas.isr_changes import maybe_expand_isr, maybe_shrink_isr
from laststand.emulator.core.broker.replicas.partition import Partition, PartitionRole
from laststand.emulator.core.broker.replicas.stray_cleanup import StrayLogs
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.zookeeper.control_fence import ControlFence
from laststand.emulator.core.broker.zookeeper.control_requests import ControlRequests
from laststand.emulator.core.broker.zookeeper.full_list import LocalLog, listed, names_all_replicas, strays_of
from laststand.emulator.core.broker.zookeeper.isr import LeaderIsrWrites, leader_write, write_isr
from laststand.emulator.core.broker.zookeeper.metadata_cache import MetadataCache, real_topic_id
from laststand.emulator.core.broker.zookeeper.topic_configs import TopicConfigs
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    Offset,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.nodes import paths
from tests.conformance.broker_world import record
from tests.conformance.harness import Fields, Handler, Vector, mismatches, outcome_mismatches
from tests.conformance.zookeeper_world import (
    CONTROLLER,
    OTHER_TOPIC_ID,
    PARTITION,
    TERM,
    TOPIC_ID,
    ControllerWorld,
    broker,
    brokers,
    era_of,
    error_name,
    leader_of,
    named_partition,
    shown,
)

OWN: Final = broker(0)
_LAG_MS: Final = 10_000
_TOPIC_IDS: Final[Mapping[str | None, TopicId | None]] = {"same": TOPIC_ID, "other": OTHER_TOPIC_ID, None: None}


def _topic_id(name: str | None) -> TopicId | None:
    """Returns the id that a vector calls ``same`` or ``other``, or names by a letter."""
    if name is None or name in _TOPIC_IDS:
        return _TOPIC_IDS[name]
    return TopicId(f"id-{name}")


def loaded_log(
    name: TopicPartition, topic_id: TopicId | None, *, records: int = 0, leader_epoch: int = 0
) -> inputs.LoadedLog:
    """Returns a log as it was found on disk, one record per batch."""
    none, end = Offset(0), Offset(records)
    return inputs.LoadedLog(
        partition=name,
        topic_id=topic_id,
        is_clean=True,
        batches=tuple(record(offset, leader_epoch) for offset in range(records)),
        log_start_offset=none,
        log_end_offset=end,
        epochs=(),
        log_start_checkpoint=none,
        high_watermark_checkpoint=none,
        recovery_point=end,
    )


class BrokerWorld:
    """A broker with one partition, and the front that control requests come to."""

    def __init__(self, vector: Vector, *, own: BrokerId = OWN, is_migrating: bool = False) -> None:
        self.vector = vector
        self.era = era_of(vector)
        self.config = BrokerConfig(
            broker_id=own,
            controller_ids=(CONTROLLER,),
            cluster_id="conformance",
            incarnation_id=IncarnationId("incarnation"),
            properties=NodeProperties(replica_lag_time_max_ms=_LAG_MS),
            switches=self.era.switches,
        )
        self.fence = ControlFence(self.era.rules)
        self.cache = MetadataCache(self.era.rules)
        self.hosted = HostedPartitions(self.cache.image)
        self.strays = StrayLogs(self.config)
        self.requests = ControlRequests(
            self.config,
            self.era.rules,
            fence=self.fence,
            cache=self.cache,
            hosted=self.hosted,
            fetchers=FetcherPool(self.config, InFlightRequests()),
            strays=self.strays,
            configs=TopicConfigs(),
            is_migrating=is_migrating or bool(vector.event.get("migration_enabled")),
        )
        self.now_ms = 1_000_000
        self.last_turn = self.turn()

    def turn(self) -> Turn:
        """Begins a step."""
        self.last_turn = Turn(now_ms=self.now_ms, cause_id=CauseId("vector"))
        return self.last_turn

    @property
    def partition(self) -> Partition | None:
        """The partition, if it is hosted."""
        return self.hosted.get(PARTITION)

    def put_alive(self, numbers: Iterable[int]) -> None:
        """Tells the broker who is alive."""
        live = tuple(control_messages.LiveBroker(broker_id=broker_id) for broker_id in brokers(numbers))
        self.cache.update(
            control_messages.UpdateMetadataRequest(controller_id=CONTROLLER, controller_epoch=TERM, live_brokers=live)
        )

    def put_local(self, local: Fields) -> None:
        """Hosts the partition in a role."""
        role = local.get("role")
        known = set(self.cache.image.brokers)
        self.put_alive(sorted(known | {broker(number) for number in local.get("isr", ())} | {broker(1)}))
        leader = 0 if role == "leader" else local.get("leader", 1)
        request = control_messages.LeaderAndIsrPartition(
            name=PARTITION,
            controller_epoch=TERM,
            leader=leader_of(leader),
            leader_epoch=LeaderEpoch(local.get("leader_epoch", -1)),
            isr=brokers(local.get("isr", (0, 1, 2))),
            partition_epoch=PartitionEpoch(local.get("partition_epoch", 0)),
            replicas=brokers(local.get("replicas", (0, 1, 2))),
            leader_recovery_state=LeaderRecoveryState[local.get("leader_recovery_state", "RECOVERED")],
            topic_id=_topic_id(local.get("topic_id")),
        )
        self.take_roles(request)
        self.put_alive(sorted(known))
        partition = self.partition
        if partition is not None and "pending" in local:
            partition.await_isr(_pending(partition.committed_isr, local["pending"]))

    def take_roles(self, *partitions: control_messages.LeaderAndIsrPartition) -> None:
        """Sends LeaderAndIsr that no check refuses."""
        request = control_messages.LeaderAndIsrRequest(
            controller_id=CONTROLLER, controller_epoch=self.fence.controller_epoch, partitions=partitions
        )
        self.requests.handle_leader_and_isr(self.turn(), request)

    def seen(self) -> dict[str, Any]:
        """Returns the partition as the broker has it."""
        created = any(isinstance(effect, effects.CreateLog) for effect in self.last_turn.effects())
        deleted = any(isinstance(effect, effects.DeleteLog) for effect in self.last_turn.effects())
        found: dict[str, Any] = {
            "log_created": created,
            "log_deleted": deleted,
            "known_controller_epoch": self.fence.controller_epoch,
            "role": PartitionRole.NONE.value,
        }
        partition = self.partition
        if partition is not None:
            found |= {
                "role": partition.role.value,
                "leader": shown(partition.leader),
                "leader_epoch": partition.leader_epoch,
                "partition_epoch": partition.partition_epoch,
                "committed_isr": list(partition.committed_isr),
                "maximal_isr": list(partition.maximal_isr),
                "pending": not isinstance(partition.isr_state, Committed),
                "local_recovery_state": self.requests.recovery_state_of(PARTITION).name,
                "log_end_offset": partition.log.log_end_offset,
                "high_watermark": partition.log.high_watermark,
                "topic_id": _topic_id_name(partition.log.topic_id),
            }
        return found


def _pending(committed: tuple[BrokerId, ...], change: Fields) -> PendingState:
    """Returns a change under way: one member more, or some fewer."""
    if "adding" in change:
        return PendingExpand(committed, broker(change["adding"][0]))
    return PendingShrink(committed, frozenset(brokers(change["removing"])))


def _topic_id_name(topic_id: TopicId | None) -> str | None:
    if real_topic_id(topic_id) is None:
        return None
    return next((name for name, known in _TOPIC_IDS.items() if known == topic_id), None)


# --- LeaderAndIsr -------------------------------------------------------------------------------------------------


def _request_of(fields: Fields, *, broker_epoch: int | None = None) -> control_messages.LeaderAndIsrRequest:
    partition = control_messages.LeaderAndIsrPartition(
        name=PARTITION,
        controller_epoch=ControllerEpoch(fields["controller_epoch"]),
        leader=leader_of(fields["leader"]),
        leader_epoch=LeaderEpoch(fields["leader_epoch"]),
        isr=brokers(fields["isr"]),
        partition_epoch=PartitionEpoch(fields["partition_epoch"]),
        replicas=brokers(fields["replicas"]),
        is_new=fields.get("is_new", False),
        leader_recovery_state=LeaderRecoveryState[fields.get("leader_recovery_state", "RECOVERED")],
        topic_id=_topic_id(fields.get("topic_id")),
    )
    return control_messages.LeaderAndIsrRequest(
        controller_id=CONTROLLER,
        controller_epoch=ControllerEpoch(fields["controller_epoch"]),
        broker_epoch=None if broker_epoch is None or broker_epoch == -1 else BrokerEpoch(broker_epoch),
        partitions=(partition,),
    )


def _take(world: BrokerWorld, request: control_messages.LeaderAndIsrRequest) -> dict[str, Any]:
    response = world.requests.handle_leader_and_isr(world.turn(), request).response
    errors = [result.error for result in response.partitions]
    return {
        **world.seen(),
        "error": error_name(response.error),
        "partition_error": error_name(errors[0]) if errors else None,
    }


def run_become(vector: Vector) -> list[str]:
    """LeaderAndIsr for one partition."""
    event = vector.event
    world = BrokerWorld(vector)
    local = vector.before.get("local")
    if local is not None:
        world.put_local(local)
    world.put_alive(event["alive"])
    world.fence.controller_epoch = ControllerEpoch(event["known_controller_epoch"])
    seen = _take(world, _request_of(event["request"], broker_epoch=event["request"].get("broker_epoch")))
    return mismatches(vector.expect, seen)


def run_leader_and_isr(vector: Vector) -> list[str]:
    """LeaderAndIsr requests: taken, or too old."""
    event = vector.event
    world = BrokerWorld(vector)
    world.put_alive((0, 1))
    world.put_local({"role": "follower", "leader": 1, "leader_epoch": event["local_leader_epoch"], "isr": [0, 1]})
    world.fence.broker_epoch = BrokerEpoch(event["broker_epoch"])
    world.fence.controller_epoch = ControllerEpoch(event["known_controller_epoch"])
    replicas = (0, 1) if event.get("in_replicas", True) else (1, 2)
    request = {
        "controller_epoch": event["request_controller_epoch"],
        "leader": 1,
        "leader_epoch": event["request_leader_epoch"],
        "isr": [1],
        "partition_epoch": 1,
        "replicas": replicas,
    }
    seen = _take(world, _request_of(request, broker_epoch=event["request_broker_epoch"]))
    is_applied = seen["leader_epoch"] == event["request_leader_epoch"] != event["local_leader_epoch"]
    return mismatches(vector.expect, {**seen, "applied": is_applied})


def run_stray_adoption(vector: Vector) -> list[str]:
    """A log that nobody hosts, and LeaderAndIsr for a partition of its name."""
    event, stray = vector.event, vector.before["stray"]
    world = BrokerWorld(vector)
    topic_id, epoch = _topic_id(stray["topic_id"]), stray["leader_epoch"]
    log = loaded_log(PARTITION, topic_id, records=stray["records"], leader_epoch=epoch)
    world.requests.add_logs([log])
    world.put_alive(event["alive"])
    world.fence.controller_epoch = ControllerEpoch(event["known_controller_epoch"])
    seen = _take(world, _request_of(event["request"]))
    if world.partition is None:
        waiting = world.requests.waiting[PARTITION]
        seen |= {"log_end_offset": waiting.log_end_offset, "topic_id": _topic_id_name(waiting.topic_id)}
    return mismatches(vector.expect, seen)


# --- Complete lists -----------------------------------------------------------------------------------------------


def _full_request(event: Fields, partitions: list[Fields]) -> control_messages.LeaderAndIsrRequest:
    named = tuple(
        control_messages.LeaderAndIsrPartition(
            name=named_partition(fields["partition"]),
            controller_epoch=TERM,
            leader=broker(1),
            leader_epoch=LeaderEpoch(0),
            isr=brokers((0, 1)),
            partition_epoch=PartitionEpoch(0),
            replicas=brokers((0, 1)),
            topic_id=_topic_id(fields.get("topic_id")),
        )
        for fields in partitions
    )
    return control_messages.LeaderAndIsrRequest(
        controller_id=CONTROLLER,
        controller_epoch=ControllerEpoch(TERM if event.get("controller_epoch_ok", True) else TERM - 1),
        broker_epoch=BrokerEpoch(7 if event.get("broker_epoch_ok", True) else 6),
        is_kraft_controller=event.get("from_kraft_controller", False),
        request_type=control_messages.LeaderAndIsrType[event.get("request_type") or "UNKNOWN"],
        contains_all_replicas=event.get("contains_all_replicas", False),
        partitions=named,
    )


def run_full_request(vector: Vector) -> list[str]:
    """Logs that a list of all replicas reveals as strays, and whether the list is believed."""
    event = vector.event
    logs = [
        LocalLog(name=named_partition(log["partition"]), topic_id=_topic_id(log.get("topic_id")))
        for log in vector.before["logs"]
    ]
    world = BrokerWorld(vector)
    world.fence.broker_epoch = BrokerEpoch(7)
    world.fence.controller_epoch = TERM
    request = _full_request(event, event["partitions"])
    world.requests.add_logs(loaded_log(log.name, log.topic_id) for log in logs)
    response = world.requests.handle_leader_and_isr(world.turn(), request).response
    is_list = response.error is ErrorCode.NONE and names_all_replicas(
        request,
        believes_kip_550=world.era.rules.contains_all_replicas,
        is_migrating=bool(event.get("migration_enabled")),
    )
    strays = strays_of(logs, listed(request)) if is_list else ()
    gone = {log.name for log in logs} - world.requests.waiting.keys() - {partition.name for partition in world.hosted}
    assert gone == {stray for stray in strays if not world.hosted.get(stray)}
    shown_strays = [f"{stray.topic}:{stray.partition}" for stray in strays]
    seen = {"error": error_name(response.error), "strays": shown_strays}
    return mismatches(vector.expect, seen, sets=("strays",))


def run_full_leader_and_isr(vector: Vector) -> list[str]:
    """Hosted partitions that a list of all replicas reveals as strays."""
    event = vector.event
    world = BrokerWorld(vector)
    world.fence.broker_epoch = BrokerEpoch(7)
    world.fence.controller_epoch = TERM
    hosted = [named_partition(text) for text in vector.before["hosted"]]
    world.put_alive((0, 1))
    world.take_roles(*_full_request({}, [{"partition": text} for text in vector.before["hosted"]]).partitions)
    request = _full_request(event, [{"partition": text} for text in event["partitions"]])
    response = world.requests.handle_leader_and_isr(world.turn(), request).response
    removed = [f"{name.topic}:{name.partition}" for name in hosted if world.hosted.get(name) is None]
    seen = {"error": error_name(response.error), "strays_removed": removed}
    return mismatches(vector.expect, seen, sets=("strays_removed",))


def _log_and_id(text: str) -> tuple[TopicPartition, TopicId]:
    log, _, topic_id = text.partition(":")
    topic, _, number = log.rpartition("-")
    return TopicPartition(topic, int(number)), TopicId(topic_id)


def run_stray_zk_full(vector: Vector) -> list[str]:
    """Logs that a migrating broker puts aside, told by a KRaft controller."""
    before = vector.before
    world = BrokerWorld(vector, is_migrating=vector.config["migration"])
    on_disk = dict(_log_and_id(text) for text in before["on_disk"])
    world.requests.add_logs(loaded_log(name, topic_id) for name, topic_id in on_disk.items())
    (template,) = _full_request({}, [{"partition": "t:0"}]).partitions
    for step in vector.steps:
        request = control_messages.LeaderAndIsrRequest(
            controller_id=CONTROLLER,
            controller_epoch=TERM,
            is_kraft_controller=True,
            request_type=control_messages.LeaderAndIsrType[step["type"]],
            partitions=tuple(
                msgspec.structs.replace(template, name=name, topic_id=topic_id)
                for name, topic_id in (_log_and_id(text) for text in before["request"])
            ),
        )
        turn = world.turn()
        world.requests.handle_leader_and_isr(turn, request)
        strays = [
            str(TopicPartition(event.topic, event.partition))
            for effect in turn.effects()
            if isinstance(effect, effects.RecordEvent) and isinstance(event := effect.event, events.StrayDetected)
        ]
        found = outcome_mismatches(vector, {"stray": strays}, sets=("stray",))
        if found:
            return found
    return []


# --- StopReplica --------------------------------------------------------------------------------------------------


def run_stop_replica(vector: Vector) -> list[str]:
    """StopReplica requests: taken, or too old; and what becomes of the log."""
    event = vector.event
    world = BrokerWorld(vector)
    world.put_alive((0, 1))
    if event.get("hosted", True):
        world.put_local({"role": "follower", "leader": 1, "leader_epoch": event["local_leader_epoch"], "isr": [0, 1]})
    else:
        world.requests.add_logs([loaded_log(PARTITION, None)])
    world.fence.controller_epoch = ControllerEpoch(event["known_controller_epoch"])
    if "broker_epoch" in event:
        world.fence.broker_epoch = BrokerEpoch(event["broker_epoch"])
    epoch = event["request_leader_epoch"]
    stopped = control_messages.StopReplicaPartition(
        name=PARTITION,
        leader_epoch=control_messages.StopReplicaEpoch(epoch) if epoch < 0 else LeaderEpoch(epoch),
        is_deleted=event["delete"],
    )
    request_broker_epoch = event.get("request_broker_epoch")
    request = control_messages.StopReplicaRequest(
        controller_id=CONTROLLER,
        controller_epoch=ControllerEpoch(event["request_controller_epoch"]),
        broker_epoch=None if request_broker_epoch in (None, -1) else BrokerEpoch(request_broker_epoch),
        partitions=(stopped,),
    )
    response = world.requests.handle_stop_replica(world.turn(), request)
    errors = [result.error for result in response.partitions]
    seen = {
        **world.seen(),
        "error": error_name(response.error),
        "partition_error": error_name(errors[0]) if errors else None,
    }
    return mismatches(vector.expect, seen)


# --- UpdateMetadata -----------------------------------------------------------------------------------------------


def _update(epoch: int, alive: list[int], partitions: Mapping[str, Fields]) -> control_messages.UpdateMetadataRequest:
    named = tuple(
        control_messages.MetadataPartition(
            name=named_partition(text),
            controller_epoch=ControllerEpoch(epoch),
            leader=control_messages.NoLeaderReason(fields["leader"])
            if fields["leader"] < 0
            else broker(fields["leader"]),
            leader_epoch=LeaderEpoch(fields["leader_epoch"]),
            isr=brokers(fields["isr"]),
            partition_epoch=PartitionEpoch(fields["partition_epoch"]),
            replicas=brokers(fields.get("replicas", fields["isr"])),
        )
        for text, fields in partitions.items()
    )
    return control_messages.UpdateMetadataRequest(
        controller_id=CONTROLLER,
        controller_epoch=ControllerEpoch(epoch),
        live_brokers=tuple(control_messages.LiveBroker(broker_id=broker_id) for broker_id in brokers(alive)),
        partitions=named,
    )


def run_update_metadata(vector: Vector) -> list[str]:
    """UpdateMetadata, and what clients are told then."""
    before, event = vector.before, vector.event
    world = BrokerWorld(vector)
    world.fence.controller_epoch = ControllerEpoch(before["known_controller_epoch"])
    world.cache.update(_update(before["known_controller_epoch"], before["alive"], before["partitions"]))
    request = _update(event["controller_epoch"], event["alive"], event["partitions"])
    response, deleted = world.requests.handle_update_metadata(world.turn(), request)
    image = world.cache.image
    partitions = {
        f"{name.topic}:{name.partition}": {
            "leader": shown(state.leader),
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
            "partition_epoch": state.partition_epoch,
        }
        for name, state in image.partitions.items()
    }
    return mismatches(
        vector.expect,
        {
            "error": error_name(response.error),
            "partitions": partitions,
            "alive": sorted(image.brokers),
            "deleted": [f"{name.topic}:{name.partition}" for name in deleted],
            "known_controller_epoch": world.fence.controller_epoch,
        },
    )


# --- A leader's own writes ----------------------------------------------------------------------------------------


class _LeaderPlay:
    """A leader that writes its ISR itself, to a ZooKeeper that takes it or does not."""

    def __init__(self, vector: Vector) -> None:
        before = vector.before
        self.world = BrokerWorld(vector, own=broker(before["leader"]))
        self.zookeeper = ControllerWorld(vector)
        self.zookeeper.put_partition(before)
        self.writes = LeaderIsrWrites(self.world.era.rules)
        self.count = 0
        self.world.put_alive(before["replicas"])
        self.world.requests.add_logs([loaded_log(PARTITION, None, records=before["log_end_offset"])])
        self.world.fence.controller_epoch = TERM
        self.world.take_roles(
            control_messages.LeaderAndIsrPartition(
                name=PARTITION,
                controller_epoch=TERM,
                leader=broker(before["leader"]),
                leader_epoch=LeaderEpoch(before["leader_epoch"]),
                isr=brokers(before["isr"]),
                partition_epoch=PartitionEpoch(before["partition_epoch"]),
                replicas=brokers(before["replicas"]),
            )
        )
        partition = self.world.partition
        assert partition is not None
        self.partition = partition
        partition.log.high_watermark = Offset(before["high_watermark"])
        self.change = vector.event

    def play(self) -> None:
        """Lets followers fetch or lag, and the leader look at them."""
        if self.change["write"] == "bad_version":
            stat = self.zookeeper.server.stat(paths.state_node(PARTITION))
            assert stat is not None
            self.zookeeper.raise_state_version(stat.version + 1)
        replica = broker(self.change["replica"])
        others = [other for other in self.partition.followers if other != replica]
        if self.change["change"] == "shrink":
            self.world.now_ms += _LAG_MS + 1
            self._fetch_to_the_end([other for other in others if other in self.partition.committed_isr])
            for _ in range(self.change.get("ticks", 1)):
                turn = self.world.turn()
                maybe_shrink_isr(turn, self.partition)
                self._write(turn)
        else:
            self._fetch_to_the_end([other for other in others if other in self.partition.committed_isr])
            for _ in range(self.change.get("ticks", 1)):
                self._fetch_to_the_end([replica])
                turn = self.world.turn()
                maybe_expand_isr(turn, self.partition, replica)
                self._write(turn)

    def _fetch_to_the_end(self, followers: list[BrokerId]) -> None:
        high_watermark = self.partition.log.high_watermark
        for follower in followers:
            self.partition.note_fetch(
                self.world.turn(),
                follower,
                fetch_offset=self.partition.log.log_end_offset,
                log_start_offset=Offset(0),
                broker_epoch=None,
            )
        if self.change["change"] == "shrink":
            assert self.partition.log.high_watermark == high_watermark

    def _write(self, turn: Turn) -> None:
        for proposal in turn.proposals:
            self.count += 1
            self.writes.begin(proposal)
            decider = self.world.requests.decider_of(PARTITION)
            write = leader_write(proposal, leader=self.world.config.broker_id, decider=decider)
            program = write_isr(write, state_format=self.world.era.rules.state_format)
            self.writes.finish(turn, self.partition, proposal, self.zookeeper.run(program))


def run_leader_isr_change(vector: Vector) -> list[str]:
    """A leader changes its ISR by its own write."""
    play = _LeaderPlay(vector)
    play.play()
    return mismatches(vector.expect, {**play.world.seen(), "writes": play.count})


KINDS: Final[Mapping[str, Handler]] = {
    "zk_broker_become": run_become,
    "zk_broker_leader_and_isr": run_leader_and_isr,
    "zk_stray_adoption": run_stray_adoption,
    "zk_full_request": run_full_request,
    "zk_full_leader_and_isr": run_full_leader_and_isr,
    "stray_zk_full": run_stray_zk_full,
    "zk_broker_stop_replica": run_stop_replica,
    "zk_update_metadata": run_update_metadata,
    "zk_leader_isr_change": run_leader_isr_change,
}

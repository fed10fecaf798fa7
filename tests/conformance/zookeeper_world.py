"""A ZooKeeper in memory, and the controller of a term in the state that a vector describes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    LeaderRecoveryState,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages, operations
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.context import (
    PartitionPhase,
    RegisteredBroker,
    Replica,
    ReplicaPhase,
)
from laststand.emulator.core.zookeeper.controller.controller_election import ControllerTerm
from laststand.emulator.core.zookeeper.controller.term import Term
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch, NodeVersion, SessionId
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol, ibp_level
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import (
    LeaderAndIsr,
    PartitionLeadership,
    decode_state,
    encode_state,
)
from laststand.emulator.core.zookeeper.nodes.small_nodes import (
    RegisteredEndpoint,
    encode_broker,
    encode_config,
    encode_isr_notification,
)
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment, TopicAssignment, decode_topic, encode_topic
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS, ZooKeeperEra
from laststand.emulator.core.zookeeper.server import ZooKeeperServer
from tests.conformance.harness import Fields, Vector

PARTITION: Final = TopicPartition("t", 0)
TOPIC_ID: Final = TopicId("AAAAAAAAAAUAAAAAAAAABg")
OTHER_TOPIC_ID: Final = TopicId("AAAAAAAAAAcAAAAAAAAACA")
CONTROLLER: Final = BrokerId(NodeId(9))
TERM: Final = ControllerEpoch(3)
LAST_RELEASE: Final = "3.9"
KIP_ERA: Final = "kip-550-zk"
SETS: Final = ("adding", "removing")


def broker(number: int) -> BrokerId:
    """Returns a broker id."""
    return BrokerId(NodeId(number))


def brokers(numbers: Iterable[int]) -> tuple[BrokerId, ...]:
    """Returns broker ids in the same order."""
    return tuple(broker(number) for number in numbers)


def leader_of(number: int) -> BrokerId | None:
    """Returns a leader; -1 is nobody."""
    return None if number == -1 else broker(number)


def shown(broker_id: BrokerId | None) -> int:
    """Returns a leader as vectors write it."""
    return -1 if broker_id is None else broker_id


def error_name(error: ErrorCode) -> str | None:
    """Returns Kafka's name of an error; success is ``None``."""
    return None if error is ErrorCode.NONE else error.name


def named_partition(text: str) -> TopicPartition:
    """Returns the partition that vectors write as ``topic:0``."""
    topic, _, number = text.rpartition(":")
    return TopicPartition(topic, int(number))


def era_of(vector: Vector) -> ZooKeeperEra:
    """Returns the release whose code is meant; text that was never built has an era of its own."""
    if "kip" in (vector.raw.get("provenance"), vector.raw.get("authority")) or vector.config.get("kip550"):
        return ZOOKEEPER_ERAS[KIP_ERA]
    return ZOOKEEPER_ERAS[f"kafka-{vector.config.get('release', LAST_RELEASE)}-zk"]


def ibp_of(vector: Vector) -> InterBrokerProtocol:
    """Returns the protocol version of the node under test."""
    return InterBrokerProtocol(ibp_level(vector.config.get("mv") or vector.config.get("ibp") or LAST_RELEASE))


def assignment_of(before: Fields) -> ReplicaAssignment:
    """Returns a partition's replicas."""
    return ReplicaAssignment(
        replicas=brokers(before["replicas"]),
        adding=brokers(before.get("adding") or ()),
        removing=brokers(before.get("removing") or ()),
    )


def leader_and_isr_of(before: Fields) -> LeaderAndIsr:
    """Returns a partition's leader and ISR."""
    return LeaderAndIsr(
        leader=leader_of(before["leader"]),
        leader_epoch=LeaderEpoch(before["leader_epoch"]),
        isr=brokers(before["isr"]),
        leader_recovery_state=LeaderRecoveryState[before.get("leader_recovery_state", "RECOVERED")],
        partition_epoch=PartitionEpoch(before["partition_epoch"]),
    )


def in_zookeeper(
    server: ZooKeeperServer, session_id: SessionId, program: operations.Program[operations.ResultT]
) -> operations.ResultT:
    """Runs a program to its end."""
    answers: operations.Answers | None = None
    while True:
        try:
            steps = next(program) if answers is None else program.send(answers)
        except StopIteration as stop:
            result: operations.ResultT = stop.value
            return result
        answers = server.execute(session_id, steps)


class ControllerWorld:
    """One partition in ZooKeeper, and an elected controller that knows of it."""

    def __init__(self, vector: Vector, *, own: BrokerId = CONTROLLER) -> None:
        self.vector = vector
        self.era = era_of(vector)
        self.config = ControllerConfig(
            broker_id=own,
            rules=self.era.rules,
            ibp=ibp_of(vector),
            unclean_leader_election_enable=False,
        )
        self.server = ZooKeeperServer()
        self.session_id = self.server.open_session(timeout_ms=6000, now_ms=0)
        self._make(operations.Create(path="/controller_epoch", data=str(TERM).encode()))
        for path in paths.PERSISTENT_PATHS:
            self._make(operations.Create(path=path))
        self.term = Term(
            self.config,
            ControllerTerm(controller_epoch=TERM, epoch_version=NodeVersion(0)),
        )
        self.context = self.term.context
        self._start_version = NodeVersion(0)

    def _make(self, step: operations.Create | operations.SetData | operations.Transaction) -> None:
        self.server.execute(self.session_id, (step,))

    def run(self, program: operations.Program[operations.ResultT]) -> operations.ResultT:
        """Runs a program of the controller to its end."""
        return in_zookeeper(self.server, self.session_id, program)

    # --- Before ---------------------------------------------------------------------------------------------------

    def put_partition(self, before: Fields, *, is_cached: bool = True) -> None:
        """Writes the partition into ZooKeeper and, if it is cached, into the controller's copy; its machines run."""
        assignment = assignment_of(before)
        topic = TopicAssignment(topic_id=TOPIC_ID, partitions={PARTITION.partition: assignment})
        data = encode_topic(topic, topic_format=self.era.rules.topic_format)
        self._make(operations.Create(path=paths.topic_node(PARTITION.topic), data=data))
        self._make(operations.Create(path=paths.topic_config_node(PARTITION.topic), data=encode_config({})))
        is_stored = before.get("stored", before) is not None and "leader" in before
        if is_stored:
            self._put_state(before)
        if not is_cached:
            return
        self.context.topic_ids[PARTITION.topic] = TOPIC_ID
        self.context.assignments[PARTITION] = assignment
        if is_stored:
            leadership = PartitionLeadership(leader_and_isr=leader_and_isr_of(before), controller_epoch=TERM)
            self.context.leadership[PARTITION] = leadership
        self.context.partition_phases[PARTITION] = PartitionPhase.ONLINE
        for broker_id in assignment.replicas:
            self.context.replica_phases[Replica(PARTITION, broker_id)] = ReplicaPhase.ONLINE
        if assignment.is_being_reassigned:
            self.context.reassigning[PARTITION] = None

    def _put_state(self, before: Fields) -> None:
        newer = before.get("stored_controller_epoch") == "newer"
        leadership = PartitionLeadership(
            leader_and_isr=leader_and_isr_of(before), controller_epoch=ControllerEpoch(TERM + 1 if newer else TERM)
        )
        data = encode_state(leadership, state_format=self.era.rules.state_format)
        self._make(operations.Create(path=paths.partitions_node(PARTITION.topic)))
        self._make(operations.Create(path=paths.partition_node(PARTITION)))
        self._make(operations.Create(path=paths.state_node(PARTITION), data=data))
        self.raise_state_version(before["partition_epoch"], data)

    def put_stored(self, stored: Fields) -> None:
        """Writes a state node as a vector has it, controller epoch included."""
        leadership = PartitionLeadership(
            leader_and_isr=leader_and_isr_of(stored), controller_epoch=ControllerEpoch(stored["controller_epoch"])
        )
        data = encode_state(leadership, state_format=self.era.rules.state_format)
        self._make(operations.Create(path=paths.topic_node(PARTITION.topic)))
        self._make(operations.Create(path=paths.partitions_node(PARTITION.topic)))
        self._make(operations.Create(path=paths.partition_node(PARTITION)))
        self._make(operations.Create(path=paths.state_node(PARTITION), data=data))
        self.raise_state_version(stored["partition_epoch"], data)

    def raise_state_version(self, version: int, data: bytes | None = None) -> None:
        """Sets the state node to itself until it has a version."""
        path = paths.state_node(PARTITION)
        content = self.server.data(path) if data is None else data
        assert content is not None
        while self._state_version() < version:
            self._make(operations.SetData(path=path, data=content, version=None))
        self._start_version = NodeVersion(version)

    def _state_version(self) -> int:
        stat = self.server.stat(paths.state_node(PARTITION))
        return -1 if stat is None else stat.version

    def put_brokers(self, states: Mapping[str, Fields]) -> None:
        """Registers the brokers of a vector, by their own epochs where it names them."""
        for text, state in states.items():
            if state.get("live", True):
                self.context.brokers[broker(int(text))] = RegisteredBroker(
                    broker_epoch=BrokerEpoch(state.get("epoch", 100 + int(text)))
                )
            if state.get("in_controlled_shutdown"):
                self.context.shutting_down.add(broker(int(text)))

    def put_live(self, numbers: Iterable[int]) -> None:
        """Registers brokers that are just alive."""
        self.put_brokers({str(number): {} for number in numbers})

    def allow_unclean(self) -> None:
        """Lets the topic be led by replicas outside its ISR."""
        data = encode_config({"unclean.leader.election.enable": "true"})
        self._make(operations.SetData(path=paths.topic_config_node(PARTITION.topic), data=data, version=None))

    def register(self, numbers: Iterable[int]) -> None:
        """Makes broker nodes in ZooKeeper."""
        for number in numbers:
            data = encode_broker(RegisteredEndpoint(), version=5, now_ms=0)
            self._make(operations.Create(path=paths.broker_node(broker(number)), data=data))

    def notify(self, names: Iterable[str]) -> None:
        """Leaves a notification of ISR changes."""
        data = encode_isr_notification(named_partition(name) for name in names)
        path = f"{paths.ISR_CHANGE_NOTIFICATIONS}/{paths.ISR_CHANGE_PREFIX}"
        self._make(operations.Create(path=path, data=data, kind=operations.NodeKind.SEQUENTIAL))

    def ask_to_delete(self) -> None:
        """Leaves a request to delete the topic."""
        self._make(operations.Create(path=paths.delete_topic_node(PARTITION.topic)))

    def move_on(self) -> None:
        """Elects another controller, which this one does not notice."""
        self._make(operations.SetData(path=paths.CONTROLLER_EPOCH, data=str(TERM + 1).encode(), version=None))

    # --- Afterwards -----------------------------------------------------------------------------------------------

    def requests(self) -> list[tuple[int, control_messages.ControlMessage]]:
        """Returns what was sent to brokers so far, in order."""
        return [(addressed.broker_id, addressed.request) for addressed in self.term.batch.outbox]

    def leader_and_isr_to(self) -> list[int]:
        """Returns who was told a role, ascending."""
        return sorted(
            {to for to, request in self.requests() if isinstance(request, control_messages.LeaderAndIsrRequest)}
        )

    def update_metadata_to(self) -> list[int]:
        """Returns who was told what clients are to know, ascending."""
        return sorted(
            {to for to, request in self.requests() if isinstance(request, control_messages.UpdateMetadataRequest)}
        )

    def sends(self) -> list[str]:
        """Returns who was told to stop a replica, and who was told a role, as vectors write it."""
        told = ",".join(str(to) for to in self.leader_and_isr_to())
        stopped = [
            f"StopReplica(delete={str(partition.is_deleted).lower()})->{to}"
            for to, request in self.requests()
            if isinstance(request, control_messages.StopReplicaRequest)
            for partition in request.partitions
        ]
        return stopped + ([f"LeaderAndIsr->[{told}]"] if told else [])

    def deletions(self) -> list[list[object]]:
        """Returns all StopReplica with delete, as vectors list them."""
        return [
            [to, True, epoch_shown(partition.leader_epoch)]
            for to, request in self.requests()
            if isinstance(request, control_messages.StopReplicaRequest)
            for partition in request.partitions
            if partition.is_deleted
        ]

    def state(self) -> dict[str, Any]:
        """Returns the partition as ZooKeeper has it, and whether it was written."""
        version = self._state_version()
        assignment = self._assignment()
        seen: dict[str, Any] = {
            "no_change": version == self._start_version if version >= 0 else True,
            "replicas": list(assignment.replicas),
            "adding": list(assignment.adding),
            "removing": list(assignment.removing),
            "in_progress": assignment.is_being_reassigned,
        }
        stored = self.stored()
        if stored is not None:
            decided = stored.leader_and_isr
            seen |= {
                "leader": shown(decided.leader),
                "isr": list(decided.isr),
                "leader_epoch": decided.leader_epoch,
                "partition_epoch": decided.partition_epoch,
                "leader_recovery_state": decided.leader_recovery_state.name,
            }
        if "replicas" in self.vector.before:
            seen["no_change"] = seen["no_change"] and assignment == assignment_of(self.vector.before)
        return seen

    def stored(self) -> PartitionLeadership | None:
        """Returns the state node."""
        data, stat = self.server.data(paths.state_node(PARTITION)), self.server.stat(paths.state_node(PARTITION))
        if data is None or stat is None:
            return None
        return decode_state(data, stat.version, state_format=self.era.rules.state_format)

    def _assignment(self) -> ReplicaAssignment:
        data = self.server.data(paths.topic_node(PARTITION.topic))
        if data is None:
            return ReplicaAssignment(replicas=())
        topic = decode_topic(data, topic_format=self.era.rules.topic_format)
        return topic.partitions[PARTITION.partition]


def epoch_shown(leader_epoch: LeaderEpoch | control_messages.StopReplicaEpoch) -> int:
    """Returns a leader epoch as vectors write it."""
    return leader_epoch.value if isinstance(leader_epoch, control_messages.StopReplicaEpoch) else leader_epoch

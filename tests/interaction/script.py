"""The format of a script, and what its commands do.

A script is a sequence of commands, each followed by ``----`` and the text that it must print. The line before ``----``
is the command; comments (``#``) and blank lines may stand before it. Arguments are words and ``name=value`` pairs. A
command that has no handler is an action, written as in plans (``docs/plans.md``).
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.eras import era_rules, is_rule, with_rule
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.properties import NodeProperties, is_node_property, node_properties
from laststand.emulator.core.switches import DEFAULT_ERA, Switches
from laststand.emulator.core.types import (
    BrokerId,
    FeatureUpgradeType,
    LeaderEpoch,
    LeaderRecoveryState,
    NodeId,
    Offset,
    ProducerEpoch,
    ProducerId,
    RequestId,
    TopicId,
    TopicPartition,
)
from laststand.emulator.plan.lines import parse_action
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.nodes import CONTROLLER, HARNESS
from laststand.emulator.simulator.actions.performer import perform
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.disk.disk import StoredLog
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.kinds import make_cluster
from laststand.emulator.simulator.zookeeper.cluster import ZooKeeperCluster
from tests.interaction import administration
from tests.interaction.probing import error_of, probes
from tests.interaction.znodes import show_controller, show_node

SEPARATOR: Final = "----"
_ACKS: Final = {"all": -1, "0": 0, "1": 1}


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One command with its expected text. ``preface`` holds the comments and blank lines before it."""

    preface: tuple[str, ...]
    text: str
    expected: tuple[str, ...]

    @property
    def name(self) -> str:
        """The first word."""
        return self.text.split()[0]

    @property
    def words(self) -> list[str]:
        """The other words that are no pairs."""
        return [word for word in self.text.split()[1:] if "=" not in word]

    @property
    def pairs(self) -> dict[str, str]:
        """The pairs."""
        return dict(word.split("=", 1) for word in self.text.split()[1:] if "=" in word)


def parse_script(text: str) -> Iterator[Command]:
    """Yields the commands of a script."""
    lines = text.splitlines()
    marks = [index for index, line in enumerate(lines) if line == SEPARATOR]
    start = 0
    for mark, following in zip(marks, [*marks[1:], len(lines) + 1], strict=True):
        end = following - 1
        while end > mark + 1 and (lines[end - 1].startswith("#") or not lines[end - 1]):
            end -= 1
        yield Command(
            preface=tuple(lines[start : mark - 1]), text=lines[mark - 1], expected=tuple(lines[mark + 1 : end])
        )
        start = end


def format_script(commands: list[Command]) -> str:
    """Returns the text of a script."""
    lines = [line for command in commands for line in (*command.preface, command.text, SEPARATOR, *command.expected)]
    return "\n".join(lines) + "\n"


def describe_partition(name: TopicPartition, state: PartitionState | None) -> str:
    """Returns the one line that scripts show of a partition's committed state."""
    if state is None:
        return f"{name} does not exist"
    leader = "none" if state.leader is None else state.leader
    line = (
        f"{name} leader={leader} leader_epoch={state.leader_epoch} partition_epoch={state.partition_epoch}"
        f" isr={_ids(state.isr)} elr={_ids(state.elr)}"
    )
    line += f" last_known_leader={state.last_known_leader}" if state.last_known_leader is not None else ""
    is_recovering = state.leader_recovery_state is LeaderRecoveryState.RECOVERING
    return line + (" RECOVERING" if is_recovering else "")


def _shown(state: PartitionState) -> dict[str, str]:
    """Returns what ``until`` may wait for; the order of members does not matter to it."""
    return {
        "leader": "none" if state.leader is None else str(state.leader),
        "isr": _in_any_order(_ids(state.isr)),
        "elr": _in_any_order(_ids(state.elr)),
        "leader_epoch": str(state.leader_epoch),
        "partition_epoch": str(state.partition_epoch),
        "recovery": state.leader_recovery_state.name,
    }


def _in_any_order(value: str) -> str:
    return ",".join(sorted(value.strip("()").split(",")))


def _ids(brokers: tuple[BrokerId, ...]) -> str:
    return "(" + ",".join(str(broker) for broker in brokers) + ")"


def _partition(word: str) -> TopicPartition:
    topic, _, index = word.rpartition("-")
    return TopicPartition(topic, int(index))


def _broker(word: str) -> BrokerId:
    return BrokerId(NodeId(int(word)))


Handler: TypeAlias = Callable[["Session", Command], list[str]]


class Session:
    """A script under way: its cluster, and a client that numbers what it sends."""

    def __init__(self) -> None:
        self._cluster: SimulatedCluster | None = None
        self._operations = 0
        self._sent: dict[TopicPartition, int] = {}
        self._journal = Journal()
        self._events_shown = 0

    @property
    def cluster(self) -> SimulatedCluster:
        """The cluster that the script's first command made."""
        assert self._cluster is not None, "a script starts with 'cluster'"
        return self._cluster

    def run(self, command: Command) -> list[str]:
        """Returns what a command prints."""
        handler = HANDLERS.get(command.name)
        return self._perform(command.text) if handler is None else handler(self, command)

    def _perform(self, line: str) -> list[str]:
        """A line of a plan, such as ``cut 0->1``, ``wait 1000`` or ``kill 100``, or a step of a scenario."""
        names = Names(brokers=len(self.cluster.nodes), partitions=self.cluster.image.partitions)
        outcome = perform(self.cluster, parse_action(line, names))
        assert outcome.took_effect, outcome.seen
        return []

    def make_cluster(self, command: Command) -> list[str]:
        """``cluster brokers=3 [era=...] [switch=...] [property=...]``: starts everything, waits until all serve."""
        pairs = command.pairs
        count = int(pairs.pop("brokers"))
        switches = era_rules(pairs.pop("era", DEFAULT_ERA))
        given: dict[str, str] = {}
        for name, value in pairs.items():
            if is_rule(name):
                switches = with_rule(switches, name, value)
            else:
                assert is_node_property(name), name
                given[name] = value
        self._cluster = _started(count, switches, node_properties(given), self._journal)
        return [f"{count} brokers serve after {self._cluster.now_ms} ms"]

    def create_topic(self, command: Command) -> list[str]:
        """``create-topic orders replicas=(0,1,2);(1,2,0) [id=...] [property=...]``."""
        pairs = command.pairs
        topic = command.words[0]
        assignments = tuple(
            tuple(int(broker) for broker in replicas.strip("()").split(","))
            for replicas in pairs.pop("replicas").split(";")
        )
        self.cluster.clients.create_topic(
            topic, assignments, pairs, topic_id=TopicId(pairs.pop("id", f"id-of-{topic}"))
        )
        self.cluster.run(20)
        return [self._state(TopicPartition(topic, index)) for index in range(len(assignments))]

    def delete_topic(self, command: Command) -> list[str]:
        """``delete-topic orders``."""
        request_id = self.cluster.clients.ask(
            CONTROLLER, admin_messages.DeleteTopicsRequest(topics=(command.words[0],)), cause="delete"
        )
        response = self._answer_to(request_id, within_ms=100)
        self.cluster.run(20)
        return [
            response.topics[0].error.name if isinstance(response, admin_messages.DeleteTopicsResponse) else "no answer"
        ]

    def reassign(self, command: Command) -> list[str]:
        """``reassign orders-0 replicas=(0,2)``, or ``replicas=()`` to cancel."""
        name = _partition(command.words[0])
        brokers = command.pairs["replicas"].strip("()")
        replicas = tuple(_broker(word) for word in brokers.split(",")) if brokers else None
        target = admin_messages.ReassignablePartition(topic=name.topic, partition=name.partition, replicas=replicas)
        request_id = self.cluster.clients.ask(
            CONTROLLER, admin_messages.AlterPartitionReassignmentsRequest(partitions=(target,)), cause="reassign"
        )
        response = self._answer_to(request_id, within_ms=100)
        if not isinstance(response, admin_messages.AlterPartitionReassignmentsResponse):
            return ["no answer"]
        return [response.partitions[0].error.name, self._state(name)]

    def directories(self, command: Command) -> list[str]:
        """``directories 2``: the partition directories on a broker's disk, with their topic ids."""
        disk = self.cluster.nodes[_broker(command.words[0])].disk
        lines = [f"{name} {_stored(log)}" for name, log in disk.logs.items()]
        lines += [f"{stray.partition} {_stored(log)} stray" for stray, log in disk.strays.items()]
        return sorted(lines)

    def produce(self, command: Command) -> list[str]:
        """``produce orders-0 to=0 acks=all [records=1] [timeout=..] [sequence=..] [producer=..] [wait=..]``."""
        pairs = command.pairs
        name = _partition(command.words[0])
        count = int(pairs.get("records", "1"))
        self._operations += 1
        operation = f"op-{self._operations}"
        producer = int(pairs["producer"]) if "producer" in pairs else None
        batch = BatchDescriptor(
            base_offset=Offset(0),
            last_offset=Offset(count - 1),
            leader_epoch=LeaderEpoch(0),
            crc=self._operations,
            size=100 * count,
            record_count=count,
            producer_id=None if producer is None else ProducerId(producer),
            producer_epoch=ProducerEpoch(int(pairs.get("epoch", "0"))),
            base_sequence=int(pairs.get("sequence", "-1")),
        )
        timeout_ms = int(pairs.get("timeout", "1000"))
        request = messages.ProduceRequest(
            acks=_ACKS[pairs.get("acks", "all")],
            timeout_ms=timeout_ms,
            partitions=(messages.ProducePartition(topic=name.topic, partition=name.partition, batch=batch),),
        )
        request_id = self.cluster.clients.ask(_broker(pairs["to"]), request, cause=operation)
        self.cluster.run_until(lambda: request_id in self.cluster.clients.answers, within_ms=timeout_ms + 10)
        response = self.cluster.clients.answers.get(request_id)
        if not isinstance(response, messages.ProduceResponse):
            return [f"{operation} no answer"]
        (answer,) = response.partitions
        offset = "" if answer.base_offset is None else f" base_offset={answer.base_offset}"
        return [f"{operation} {answer.error.name}{offset}"]

    def consume(self, command: Command) -> list[str]:
        """``consume orders-0 from=0 offset=0 [rack=..]``: what a consumer gets of one fetch."""
        name = _partition(command.words[0])
        asked = messages.FetchPartition(
            topic=name.topic,
            topic_id=None,
            partition=name.partition,
            fetch_offset=Offset(int(command.pairs["offset"])),
        )
        request = messages.FetchRequest(partitions=(asked,), max_wait_ms=0, client_rack=command.pairs.get("rack"))
        request_id = self.cluster.clients.ask(_broker(command.pairs["from"]), request, cause="consume")
        self.cluster.run_until(lambda: request_id in self.cluster.clients.answers, within_ms=100)
        response = self.cluster.clients.answers.get(request_id)
        if not isinstance(response, messages.FetchResponse):
            return ["no answer"]
        (answer,) = response.partitions
        if answer.preferred_read_replica is not None:
            return [f"{answer.error.name} preferred_read_replica={answer.preferred_read_replica}"]
        batches = " ".join(_batch(batch) for batch in answer.batches)
        return [f"{answer.error.name} high_watermark={answer.high_watermark} {batches}".rstrip()]

    def list_offsets(self, command: Command) -> list[str]:
        """``list-offsets orders-0 from=0 at=latest|earliest``."""
        name = _partition(command.words[0])
        timestamp = {"latest": -1, "earliest": -2}[command.pairs["at"]]
        position = messages.ListOffsetsPosition(topic=name.topic, partition=name.partition, timestamp=timestamp)
        request = messages.ListOffsetsRequest(partitions=(position,))
        request_id = self.cluster.clients.ask(_broker(command.pairs["from"]), request, cause="list-offsets")
        self.cluster.run_until(lambda: request_id in self.cluster.clients.answers, within_ms=100)
        response = self.cluster.clients.answers.get(request_id)
        if not isinstance(response, messages.ListOffsetsResponse):
            return ["no answer"]
        (answer,) = response.partitions
        return [f"{answer.error.name} offset={answer.offset}"]

    def probe(self, command: Command) -> list[str]:
        """``probe orders-0 at=1``: what a broker answers to one request of each kind that KIP-704 names."""
        name = _partition(command.words[0])
        lines: list[str] = []
        for api, request in probes(name).items():
            request_id = self.cluster.clients.ask(_broker(command.pairs["at"]), request, cause=f"probe-{api}")
            lines.append(f"{api} {error_of(self._answer_to(request_id, within_ms=200))}")
        return lines

    def _answer_to(self, request_id: RequestId, *, within_ms: int) -> messages.Response | None:
        self.cluster.run_until(lambda: request_id in self.cluster.clients.answers, within_ms=within_ms)
        return self.cluster.clients.answers.get(request_id)

    def elect_leaders(self, command: Command) -> list[str]:
        """``elect-leaders orders-0 type=UNCLEAN [leader=1] [within=ms]``: what the controller answers, if it does."""
        name = _partition(command.words[0])
        leader = command.pairs.get("leader")
        asked = admin_messages.ElectablePartition(
            topic=name.topic,
            partition=name.partition,
            desired_leader=None if leader is None else _broker(leader),
        )
        election = admin_messages.RequestedElection[command.pairs["type"]]
        request = admin_messages.ElectLeadersRequest(election_type=election, partitions=(asked,))
        request_id = self.cluster.clients.ask(CONTROLLER, request, cause="elect-leaders")
        response = self._answer_to(request_id, within_ms=int(command.pairs.get("within", "1000")))
        if not isinstance(response, admin_messages.ElectLeadersResponse):
            return ["no answer yet"]
        (answer,) = response.partitions
        return [f"{answer.error.name} {answer.error_message}".rstrip(), self._state(name)]

    def list_reassignments(self, command: Command) -> list[str]:
        """``list-reassignments``: all that is under way."""
        return administration.list_reassignments(self.cluster)

    def alter_partition(self, command: Command) -> list[str]:
        """``alter-partition orders-0 from=0 isr=(0,1@7,2@?) [version=3] [leader_epoch=..] [..]``: a leader's wish.

        A member may name a broker epoch, ``?`` for one that the leader does not know; what is not given is true.
        """
        name = _partition(command.words[0])
        answered = administration.alter_partition(self.cluster, name, command.pairs)
        return [*answered, self._state(name)]

    def alter_config(self, command: Command) -> list[str]:
        """``alter-config orders|broker:1|cluster name=value``: ``=`` deletes, ``=+v`` appends, ``=-v`` subtracts."""
        return administration.alter_config(self.cluster, command.words[0], command.pairs)

    def describe_config(self, command: Command) -> list[str]:
        """``describe-config orders|broker:1|cluster name...``: the value in effect, then every place that gives one."""
        resource, *names = command.words
        return administration.describe_config(self.cluster, resource, names)

    def update_features(self, command: Command) -> list[str]:
        """``update-features UPGRADE|SAFE_DOWNGRADE|UNSAFE_DOWNGRADE name=level...``."""
        upgrade_type = FeatureUpgradeType(command.words[0])
        return administration.update_features(self.cluster, command.pairs, upgrade_type=upgrade_type)

    def describe_features(self, command: Command) -> list[str]:
        """``describe-features``: finalized levels, and those that exist."""
        return administration.describe_features(self.cluster)

    def describe_topics(self, command: Command) -> list[str]:
        """``describe-topics [topic ...] at=1 limit=2 [cursor=orders-2]``: a page of what a node knows."""
        cursor = command.pairs.get("cursor")
        return administration.describe_topics(
            self.cluster,
            tuple(command.words),
            node_id=_broker(command.pairs["at"]),
            cursor=None if cursor is None else _partition(cursor),
            limit=int(command.pairs["limit"]),
        )

    def unregister(self, command: Command) -> list[str]:
        """``unregister 2``: the controller forgets a broker."""
        return administration.unregister(self.cluster, _broker(command.words[0]))

    def describe_cluster(self, command: Command) -> list[str]:
        """``describe-cluster``: registered brokers."""
        return administration.describe_cluster(self.cluster)

    def init_producer(self, command: Command) -> list[str]:
        """``init-producer from=0``: an id from the broker."""
        request = messages.InitProducerIdRequest()
        request_id = self.cluster.clients.ask(_broker(command.pairs["from"]), request, cause="init-producer")
        self.cluster.run_until(lambda: request_id in self.cluster.clients.answers, within_ms=100)
        response = self.cluster.clients.answers.get(request_id)
        if not isinstance(response, messages.InitProducerIdResponse):
            return ["no answer"]
        return [f"{response.error.name} producer_id={response.producer_id} producer_epoch={response.producer_epoch}"]

    def wait_for(self, command: Command) -> list[str]:
        """``until orders-0 [leader=1|none] [isr=(1,2)] [elr=(0)] [recovery=..] [within=ms]``: waits for a state."""
        name = _partition(command.words[0])
        pairs = command.pairs
        within_ms = int(pairs.pop("within", "30000"))
        wanted = {key: _in_any_order(value) for key, value in pairs.items()}

        def is_reached() -> bool:
            state = self.cluster.state(name)
            return state is not None and wanted.items() <= _shown(state).items()

        reached = self.cluster.run_until(is_reached, within_ms=within_ms)
        return [("" if reached else "NOT REACHED: ") + self._state(name)]

    def wait_for_serving(self, command: Command) -> list[str]:
        """``until-unfenced 2 [within=ms]``: waits until the controller has unfenced a broker."""
        broker_id = _broker(command.words[0])
        brokers = self.cluster.image.brokers

        def is_unfenced() -> bool:
            node = self.cluster.nodes[broker_id]
            registration = brokers.get(broker_id)
            if registration is None:
                return False
            is_current = registration.incarnation_id == f"incarnation-{broker_id}-{node.incarnation}"
            return is_current and not registration.fenced

        within_ms = int(command.pairs.get("within", "30000"))
        reached = self.cluster.run_until(is_unfenced, within_ms=within_ms)
        return [f"broker {broker_id} {'is unfenced' if reached else 'IS NOT UNFENCED'}"]

    def end(self, command: Command) -> list[str]:
        """``kill 0``, or ``power-loss 0 keep=none kept=0 truncation=undone names=undone``: what is left of each log."""
        node = self.cluster.nodes.get(_broker(command.words[0]))
        logs = {} if node is None else node.disk.logs
        before = {name: log.log_end_offset for name, log in sorted(logs.items())}
        self._perform(command.text)
        return [f"{name} log_end_offset {old} -> {logs[name].log_end_offset}" for name, old in before.items()]

    def stop(self, command: Command) -> list[str]:
        """``stop 0``: a controlled shutdown, waited for."""
        broker_id = _broker(command.words[0])
        self._perform(command.text)
        stopped = self.cluster.run_until(lambda: self.cluster.nodes[broker_id].broker is None)
        return [f"broker {broker_id} {'stopped' if stopped else 'DID NOT STOP'}"]

    def describe(self, command: Command) -> list[str]:
        """``describe orders-0``: the committed state."""
        return [self._state(_partition(command.words[0]))]

    def node(self, command: Command) -> list[str]:
        """``node /controller_epoch``: what is in ZooKeeper."""
        return show_node(self._with_zookeeper(), command.words[0])

    def show_controller(self, command: Command) -> list[str]:
        """``controller``: who is elected, in which epoch, and who takes itself for the controller."""
        return show_controller(self._with_zookeeper())

    def _with_zookeeper(self) -> ZooKeeperCluster:
        assert isinstance(self.cluster, ZooKeeperCluster), "this era has no ZooKeeper"
        return self.cluster

    def logs(self, command: Command) -> list[str]:
        """``logs orders-0``: every replica's log."""
        name = _partition(command.words[0])
        lines: list[str] = []
        for broker_id, node in self.cluster.nodes.items():
            log = node.disk.logs.get(name)
            if log is None:
                continue
            partition = None if node.broker is None else node.broker.partition(name)
            role = "down" if partition is None else partition.role.value
            high_watermark = "" if partition is None else f" high_watermark={partition.log.high_watermark}"
            epochs = ",".join(f"{entry.leader_epoch}@{entry.start_offset}" for entry in log.epochs)
            lines.append(
                f"broker {broker_id} {role} log_end_offset={log.log_end_offset}{high_watermark} epochs=({epochs})"
            )
        return lines

    def events(self, command: Command) -> list[str]:
        """``events LogTruncated BecameLeader``: events of these types since the last time."""
        entries = self._journal.entries[self._events_shown :]
        self._events_shown = len(self._journal.entries)
        return [
            f"{entry.node_id}: {entry.event.describe()}"
            for entry in entries
            if type(entry.event).__name__ in command.words and entry.node_id != HARNESS
        ]

    def _state(self, name: TopicPartition) -> str:
        return describe_partition(name, self.cluster.state(name))


def _stored(log: StoredLog) -> str:
    return f"{log.topic_id} log_start_offset={log.log_start_offset} log_end_offset={log.log_end_offset}"


def _batch(batch: BatchDescriptor) -> str:
    return f"{batch.base_offset}..{batch.last_offset}@{batch.leader_epoch}/op-{batch.crc}"


def _started(count: int, switches: Switches, properties: NodeProperties, journal: Journal) -> SimulatedCluster:
    cluster = make_cluster(brokers=count, switches=switches, properties=properties, observer=journal)
    for node in cluster.nodes.values():
        cluster.processes.start(node)
    served = cluster.run_until(lambda: cluster.is_up)
    assert served, "the cluster did not come up"
    return cluster


HANDLERS: Final[dict[str, Handler]] = {
    "cluster": Session.make_cluster,
    "create-topic": Session.create_topic,
    "delete-topic": Session.delete_topic,
    "reassign": Session.reassign,
    "list-reassignments": Session.list_reassignments,
    "alter-partition": Session.alter_partition,
    "alter-config": Session.alter_config,
    "describe-config": Session.describe_config,
    "update-features": Session.update_features,
    "describe-features": Session.describe_features,
    "describe-topics": Session.describe_topics,
    "unregister": Session.unregister,
    "describe-cluster": Session.describe_cluster,
    "directories": Session.directories,
    "produce": Session.produce,
    "consume": Session.consume,
    "list-offsets": Session.list_offsets,
    "probe": Session.probe,
    "elect-leaders": Session.elect_leaders,
    "init-producer": Session.init_producer,
    "until": Session.wait_for,
    "until-unfenced": Session.wait_for_serving,
    "kill": Session.end,
    "power-loss": Session.end,
    "stop": Session.stop,
    "describe": Session.describe,
    "node": Session.node,
    "controller": Session.show_controller,
    "logs": Session.logs,
    "events": Session.events,
}

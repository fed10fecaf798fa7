"""A cluster of Apache Kafka: one JVM per node, with the links, folders and incarnations of Laststand's nodes.

Links are directed without privileges. Each JVM has a hosts file of its own (``-Djdk.net.hosts.file``), in which the
name of every other node stands for a loopback address. There the proxy of exactly that link listens, at the one port
that the node advertises::

    broker 0:  node-1 = 127.0.1.1    proxy of 0->1 at 127.0.1.1:P   -> broker 1 at 127.0.0.1:P
    broker 2:  node-1 = 127.0.3.1    proxy of 2->1 at 127.0.3.1:P   -> broker 1 at 127.0.0.1:P

Controllers advertise such names, too: otherwise other nodes would learn the controllers' own ports, and bypass the
proxies. Several controllers are static voters, or, if the rules have directory ids, voters by node and directory
(``kraft.version`` 1).

With an authorizer, every node and client authenticates by SASL/PLAIN as the principal that it has on Laststand's own
processes: its name is the user, and the cluster's token the password, which nodes read from the token's file (KIP-421).
"""

import asyncio
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

import msgspec

from laststand.emulator.cluster.child import ProcessEnd, ProcessSpec
from laststand.emulator.cluster.kafka_distribution import KafkaProgram, find_kafka
from laststand.emulator.cluster.kafka_probe import KafkaProbeConnection, await_kafka
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.link_messages import LinkMessages
from laststand.emulator.cluster.node_host import LocalHost, NodeProcess
from laststand.emulator.cluster.ports import LOOPBACK
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.cluster.sync_shim import sync_shim_environment
from laststand.emulator.core.broker.kraft.lifecycle import rack_of
from laststand.emulator.core.quorum.settings import initial_directory_id
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey, Voter, VoterSet
from laststand.emulator.core.requester import node_name
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.kafka.first_checkpoint import FIRST_CHECKPOINT, first_checkpoint
from laststand.emulator.kafka.metadata_log import METADATA_LOG
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.rpc.certificates import HARNESS
from laststand.emulator.storage.meta_properties import META_PROPERTIES
from laststand.emulator.storage.power_loss import count_as_durable
from laststand.emulator.storage.quorum_state import QUORUM_STATE, parse_quorum_state

if TYPE_CHECKING:
    from laststand.emulator.cluster.toxiproxy import Toxiproxy

LISTENS_WITHIN_S: Final = 60.0
"""A broker listens once it has caught up with the controller; one that cannot reach it does not."""

_STOP_TIMEOUT_S: Final = 60.0
_LOOK_INTERVAL_S: Final = 0.05
_OURS: Final = frozenset(
    {
        "alter.partition.retry.backoff.ms",
        "broker.rack",
        "leader.recovery.min.ms",
        "metadata.version",
        "stray.delete.delay.ms",
        "unclean.recovery.retry.backoff.ms",
    }
)
"""Properties that Kafka does not have, and one that is not the same for all brokers."""

_CHECKPOINT_INTERVAL: Final = "log.flush.offset.checkpoint.interval.ms"
_OF_LOG_STARTS: Final = ("log.flush.start.offset.checkpoint.interval.ms", "log.initial.task.delay.ms")
"""Kafka has an interval of its own for log starts, and writes all for the first time 30 s after it started, whatever
the intervals. The emulator writes both checkpoints at once, for the first time, too, after one interval."""

_FIXED: Final = {
    "auto.create.topics.enable": "false",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.append.linger.ms": "0",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "metadata.max.idle.interval.ms": "0",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
}
"""A JVM of 192 MB has no room for the default buffer. Without idle records, and with a batch for each decision, the
metadata log is easier to read."""

_LOGIN: Final = {
    "config.providers": "directory",
    "config.providers.directory.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
}
"""Of nodes that want to know who dials them."""


class KafkaHost(LocalHost):
    """``LocalHost`` whose nodes are JVMs."""

    def __init__(
        self, supervisor: Supervisor, *, program_of: Callable[[NodeId], KafkaProgram], sync_shim: Path | None
    ) -> None:
        super().__init__(supervisor)
        self._program_of = program_of
        self._sync_shim = sync_shim

    async def start(self, node_id: NodeId, arguments: tuple[str, ...]) -> NodeProcess:
        """Starts a JVM with these arguments, and waits until it listens or has ended.

        A broker that cannot reach the controller does neither: then for a minute.
        """
        program = self._program_of(node_id)
        kafka = program.distribution
        archive = (f"-XX:SharedArchiveFile={kafka.class_archive}", "-Xshare:auto", "-Xlog:disable")
        with self._ports_lent(node_id):
            process = await self._supervisor.start(
                ProcessSpec(
                    name=str(node_id),
                    argv=(str(program.java), "-cp", kafka.class_path, *program.jvm_options, *archive, *arguments),
                    stderr_path=self._layout.node_log(node_id),
                    environment=self._sync_environment(node_id),
                    exits_with_signal_number=True,
                    stop_timeout_s=_STOP_TIMEOUT_S,
                )
            )
            await await_kafka(
                self.address(node_id), has_ended=lambda: process.end is not None, timeout_s=LISTENS_WITHIN_S
            )
        return process

    def _sync_environment(self, node_id: NodeId) -> dict[str, str]:
        if self._sync_shim is None:
            return {}
        data, ledger = self._layout.data_directory(node_id), self._layout.ledger_directory(node_id)
        return sync_shim_environment(self._sync_shim, data=data, ledger=ledger)

    async def start_toxiproxy(self, program: Path) -> "Toxiproxy":
        """Starts a child that knows how to ask Kafka for a sign of life."""
        from laststand.emulator.cluster.toxiproxy import Toxiproxy

        return await Toxiproxy.start(
            supervisor=self._supervisor,
            program=program,
            log_path=self._layout.directory / "toxiproxy.log",
            token_file=self._layout.token_file,
            probe_connection=KafkaProbeConnection,
        )


class KafkaCluster(ProcessCluster):
    """The JVMs of one run.

    Args:
        layout: the nodes of the cluster, and the places of its files.
        kafka: the program of a node; restarted nodes may run another release.
        rules_of: returns the rules of a release.
        sync_shim: the library that records the nodes' syncs; ``None`` if no node will lose power.
        messages: the links on which faults of single messages are possible.
        properties: of every node, in addition to those of the layout.
        on_start: as in ``ProcessCluster``.
        on_stop: called with a node that is about to be stopped in order.
        on_end: called with node, incarnation and end of each process that has ended, before ``on_unexpected_end``.
        on_unexpected_end: as in ``ProcessCluster``.
    """

    records_unreachable_peers = False

    def __init__(
        self,
        layout: ClusterLayout,
        *,
        kafka: KafkaProgram,
        rules_of: Callable[[KafkaProgram], Switches],
        sync_shim: Path | None,
        messages: LinkMessages,
        properties: Mapping[str, str],
        on_start: Callable[[NodeId, int, Switches | None], None],
        on_stop: Callable[[NodeId], None],
        on_end: Callable[[NodeId, int, ProcessEnd], None],
        on_unexpected_end: Callable[[str, ProcessEnd], None],
    ) -> None:
        super().__init__(layout, on_start=on_start, on_unexpected_end=on_unexpected_end)
        self._host = KafkaHost(self.supervisor, program_of=self._program_of, sync_shim=sync_shim)
        self._keeps_ledgers = sync_shim is not None
        self._kafka = kafka
        self._rules_of = rules_of
        self._own_programs: dict[NodeId, KafkaProgram] = {}
        self._messages = messages
        self._node_properties = properties
        self._on_stop = on_stop
        self._on_end = on_end

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kills what still runs, and closes the proxies that know messages."""
        await super().__aexit__(kind, error, trace)
        await self._messages.close()

    def _program_of(self, node_id: NodeId) -> KafkaProgram:
        return self._own_programs.get(node_id, self._kafka)

    def set_release(self, node_id: NodeId, *, era: str | None, kafka: str | None) -> None:
        """Sets the release of a node's next processes, if one is named.

        Raises:
            MissingToolError: the release is not installed.
        """
        if kafka is not None:
            self._own_programs[node_id] = msgspec.structs.replace(self._kafka, distribution=find_kafka(kafka))

    def own_rules(self, node_id: NodeId) -> Switches | None:
        """Returns the rules of the release that a node runs, if these are not the run's rules."""
        program = self._own_programs.get(node_id)
        return None if program is None else self._rules_of(program)

    async def _start_together(self, node_ids: Sequence[NodeId]) -> None:
        """Starts nodes; of several controllers the first is elected, as scenarios name it by its id.

        Until all controllers follow the first one, they cannot call each other, so that no other controller wins a
        vote.
        """
        first, *others = self.layout.controller_ids
        if not others or self.toxiproxy is None:
            await super()._start_together(node_ids)
            return
        muted = [Link(source, target) for source in others for target in (first, *others) if source != target]
        await self.toxiproxy.cut(muted)
        async with asyncio.TaskGroup() as tasks:
            starting = tasks.create_task(super()._start_together(node_ids))
            await self._await_leadership(first, starting)
            await self.toxiproxy.restore(muted)

    async def _await_leadership(self, leader_id: NodeId, starting: asyncio.Task[None]) -> None:
        """Waits until all controllers' disks name a leader, or until the time limit for the start of a node.

        It waits no longer once all controllers were started and one has ended: that end is reported as a crash.

        A controller that does not follow yet may become a candidate, and without pre-votes it deposes the leader.
        """
        deadline = asyncio.get_running_loop().time() + LISTENS_WITHIN_S
        while asyncio.get_running_loop().time() < deadline:
            if all(self._leader_by(node_id) == leader_id for node_id in self.layout.controller_ids):
                return
            if starting.done() and not all(map(self.is_running, self.layout.controller_ids)):
                return
            await asyncio.sleep(_LOOK_INTERVAL_S)

    def _leader_by(self, node_id: NodeId) -> NodeId | None:
        state = self.layout.data_directory(node_id) / METADATA_LOG / QUORUM_STATE
        return parse_quorum_state(state.read_bytes(), path=str(state)).leader_id if state.exists() else None

    async def start_node(self, node_id: NodeId) -> int:
        """Starts a node; faults of messages continue, except those of a counted number of messages."""
        self._messages.starting(node_id, self.interceptions.get(node_id, ()))
        return await super().start_node(node_id)

    async def stop_node(self, node_id: NodeId) -> ProcessEnd | None:
        """Ends a node in order; ``None`` if it was down."""
        self._on_stop(node_id)
        return await super().stop_node(node_id)

    def has_sync_ledger(self, _: NodeId) -> bool:
        """Returns whether nodes run under the shim."""
        return self._keeps_ledgers

    def _ended(self, end: ProcessEnd) -> None:
        if end.name.isdigit():
            node_id = NodeId(int(end.name))
            self._on_end(node_id, self.incarnation(node_id), end)
        super()._ended(end)

    async def _detours(self) -> Mapping[Link[NodeId], str]:
        return await self._messages.open(self._host.address)

    def _listeners(self, links: Iterable[Link[NodeId]]) -> Mapping[Link[NodeId], str]:
        ports = self.ports()
        return {link: f"{self._host_for(link.source)}:{ports[link.target]}" for link in links}

    def _host_for(self, source: NodeId) -> str:
        """Returns the address by which a node, or the client, finds all others."""
        sources = (*self.layout.node_ids, CLIENT)
        return f"127.0.{sources.index(source) + 1}.1"

    def _configure(self, node_id: NodeId, incarnation: int) -> tuple[str, ...]:
        directory = self.layout.node_directory(node_id)
        self._format(node_id, self.layout.data_directory(node_id), is_first=incarnation == 0)
        hosts, properties = directory / "hosts", directory / f"server-{incarnation}.properties"
        hosts.write_text(self._hosts(node_id), encoding="utf-8")
        _write_properties(properties, self._properties(node_id))
        return f"-Djdk.net.hosts.file={hosts}", "kafka.Kafka", str(properties)

    def _format(self, node_id: NodeId, data: Path, *, is_first: bool) -> None:
        if (data / META_PROPERTIES).exists():
            return
        is_controller = node_id in self.layout.controller_ids
        template = self._kafka.distribution.formatted(elr=self.layout.switches.elr) if is_controller else None
        is_voter = is_controller and is_first and self.layout.has_directory_ids
        directory_id = initial_directory_id(self.cluster_id, node_id) if is_voter else None
        format_log_directory(
            data, template=template, node_id=node_id, cluster_id=self.cluster_id, directory_id=directory_id
        )
        if is_voter:
            name_voters(data, self._voters())
        if self._keeps_ledgers:
            count_as_durable(str(data), ledger_folder=str(self.layout.ledger_directory(node_id)))

    def _hosts(self, node_id: NodeId) -> str:
        others = LOOPBACK if self.toxiproxy is None else self._host_for(node_id)
        names = {other: LOOPBACK if other == node_id else others for other in self.layout.node_ids}
        lines = [f"{address} {_host_name(other)}" for other, address in names.items()]
        return "\n".join([f"{LOOPBACK} localhost {os.uname().nodename}", *lines]) + "\n"

    def _properties(self, node_id: NodeId) -> dict[str, str]:
        is_controller = node_id in self.layout.controller_ids
        has_login = self.layout.has_authorizer
        protocol = "SASL_PLAINTEXT" if has_login else "PLAINTEXT"
        role, listener = ("controller", "CONTROLLER") if is_controller else ("broker", protocol)
        ports = self.ports()
        given = {name: value for name, value in self.layout.properties if name not in _OURS}
        if _CHECKPOINT_INTERVAL in given:
            given |= dict.fromkeys(_OF_LOG_STARTS, given[_CHECKPOINT_INTERVAL])
        racks = dict(self.layout.properties).get("broker.rack")
        if racks is not None and not is_controller:
            given["broker.rack"] = rack_of(BrokerId(node_id), racks)
        return {
            **_FIXED,
            **self._node_properties,
            **given,
            **(self._login(node_id) if has_login else {}),
            "node.id": str(node_id),
            "process.roles": role,
            "log.dirs": str(self.layout.data_directory(node_id)),
            "listeners": f"{listener}://{LOOPBACK}:{ports[node_id]}",
            "advertised.listeners": f"{listener}://{_host_name(node_id)}:{ports[node_id]}",
            **self._quorum_properties(),
        }

    def _quorum_properties(self) -> dict[str, str]:
        voters = self._voters().voters
        if self.layout.has_directory_ids:
            return {"controller.quorum.bootstrap.servers": ",".join(voter.listener for voter in voters)}
        named = ",".join(f"{voter.key.node_id}@{voter.listener}" for voter in voters)
        return {"controller.quorum.voters": named}

    def _voters(self) -> VoterSet:
        ports = self.ports()
        return VoterSet.of(
            Voter(
                key=ReplicaKey(node_id, initial_directory_id(self.cluster_id, node_id)),
                listener=f"{_host_name(node_id)}:{ports[node_id]}",
            )
            for node_id in self.layout.controller_ids
        )

    def _login(self, node_id: NodeId) -> dict[str, str]:
        """Returns the properties by which a node authenticates itself at other nodes, and others at itself."""
        password = f"${{directory:{self.layout.directory}:{self.layout.token_file.name}}}"
        names = {*map(node_name, (*self.layout.node_ids, CLIENT)), HARNESS}
        users = " ".join(f'user_{name}="{password}"' for name in sorted(names))
        jaas = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{node_name(node_id)}" password="{password}" {users};'
        )
        super_users = dict(self.layout.properties).get("super.users", "")
        return {
            **_LOGIN,
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "listener.name.controller.plain.sasl.jaas.config": jaas,
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
            "super.users": ";".join(filter(None, (super_users, f"User:{HARNESS}"))),
        }


def format_log_directory(
    data: Path,
    *,
    template: Path | None,
    node_id: NodeId,
    cluster_id: str,
    directory_id: DirectoryId | None = None,
) -> None:
    """Makes a log directory as Kafka's ``StorageTool`` does.

    Args:
        data: the directory; of a node that has none yet.
        template: a formatted log directory, which is copied except for its identity; ``None`` for a broker's.
        node_id: the node that the log directory is for.
        cluster_id: of which cluster.
        directory_id: id of the directory; random if not given.
    """
    if template is not None:
        shutil.copytree(template, data, dirs_exist_ok=True, ignore=shutil.ignore_patterns(META_PROPERTIES))
    data.mkdir(parents=True, exist_ok=True)
    drawn = directory_id or uuid_text(secrets.token_bytes(16))
    meta = {"version": "1", "cluster.id": cluster_id, "node.id": node_id, "directory.id": drawn}
    _write_properties(data / META_PROPERTIES, meta)


def name_voters(data: Path, voters: VoterSet) -> None:
    """Writes a quorum's first voters, by node and directory id, into a formatted log directory."""
    path = data / METADATA_LOG / FIRST_CHECKPOINT
    path.parent.mkdir(exist_ok=True)
    bootstrap = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    path.write_bytes(first_checkpoint(voters, bootstrap=bootstrap, timestamp_ms=time.time_ns() // 1_000_000))


def _write_properties(path: Path, values: Mapping[str, object]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()), encoding="utf-8")


def _host_name(node_id: NodeId) -> str:
    return f"node-{node_id}"

"""The nodes of a ZooKeeper cluster: processes of a broker and a controller each, and the ZooKeeper server."""

from collections.abc import Mapping

from laststand.emulator.core import events
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.eras import ZooKeeperSwitches
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerId, MetadataOffset, NodeRole, TopicPartition
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY, VERSIONS, IbpLevel, InterBrokerProtocol
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.simulator.nodes.nodes import CLUSTER_ID, BrokerNode, MetadataNode, incarnation_name
from laststand.emulator.simulator.zookeeper.process_core import ZooKeeperProcessCore
from laststand.emulator.simulator.zookeeper.service import ZooKeeperService, ZooKeeperStore


class ZooKeeperBrokerNode(BrokerNode):
    """A broker process with its controller.

    Args:
        broker_id: of the broker.
        store: of the ZooKeeper server; maps partition states to zxids.

    Attributes:
        process_core: the core, while it runs.
        ibp: the protocol version of its next processes; ``None`` for that of the rules.
    """

    def __init__(self, broker_id: BrokerId, store: ZooKeeperStore) -> None:
        super().__init__(broker_id)
        self.process_core: ZooKeeperProcessCore | None = None
        self.ibp: IbpLevel | None = None
        self._spoken: IbpLevel | None = None
        self._store = store

    def protocol(self, switches: ZooKeeperSwitches) -> InterBrokerProtocol:
        """Returns the protocol of the broker."""
        return switches.protocol_of(self.broker_id, started_with=self.ibp)

    @property
    def more_properties(self) -> Mapping[str, str]:
        """The protocol version of the process that runs or ran last."""
        return {} if self._spoken is None else {PROPERTY: VERSIONS[self._spoken]}

    def boot(self, switches: Switches, properties: NodeProperties) -> None:
        """Makes a new process on the disk."""
        assert isinstance(switches, ZooKeeperSwitches), "a ZooKeeper cluster has its own rules"
        self.incarnation += 1
        self.incarnation_id = incarnation_name(self.broker_id, self.incarnation)
        self.marks = {}
        config = BrokerConfig(
            broker_id=self.broker_id,
            controller_ids=(CONTROLLER,),
            cluster_id=CLUSTER_ID,
            incarnation_id=self.incarnation_id,
            properties=properties,
            switches=switches,
        )
        protocol = self.protocol(switches)
        self._spoken = protocol.level
        self.core = self.process_core = ZooKeeperProcessCore(
            config,
            switches.zookeeper,
            protocol,
            session_timeout_ms=properties.broker_session_timeout_ms,
        )
        self.broker = self.process_core.process.broker

    def metadata_end(self, name: TopicPartition) -> MetadataOffset:
        """Returns the zxid after the decision that gave the broker its role; 0 if it has no role."""
        partition = None if self.broker is None else self.broker.partition(name)
        if partition is None:
            return MetadataOffset(0)
        return self._store.decided_at(name, partition.leader_epoch, partition.partition_epoch)

    def end(self) -> None:
        """Notes that the process ended; the disk stays."""
        super().end()
        self.process_core = None


class ZooKeeperNode(MetadataNode):
    """The ZooKeeper server; all its state stays."""

    role = NodeRole.ZOOKEEPER

    def __init__(self, store: ZooKeeperStore) -> None:
        super().__init__()
        self.store = store
        self.durable = store.history.image
        self.service: ZooKeeperService | None = None

    @property
    def committed_end_offset(self) -> MetadataOffset:
        """The zxid after that of the last write."""
        return MetadataOffset(self.store.server.last_zxid + 1)

    @property
    def length(self) -> int:
        """The number of writes, each of which is synced."""
        return self.store.server.last_zxid

    def boot(self, switches: Switches, properties: NodeProperties) -> tuple[events.ControllerEvent, ...]:
        """Creates a new process; every write was delivered when it was made."""
        self.incarnation += 1
        self.core = self.service = ZooKeeperService(self.store)
        return ()

    def lose_unsynced(self) -> None:
        """Loses nothing: the server answers only after it has synced."""

    def end(self) -> None:
        """Notes that the process ended, and its connections with it."""
        super().end()
        self.service = None
        self.store.disconnect_all()

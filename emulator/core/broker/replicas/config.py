"""The start parameters of one broker process: identity, properties, switches."""

import msgspec

from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerEpoch, BrokerId, IncarnationId, NodeId


class BrokerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One frozen configuration per process.

    Attributes:
        broker_id: this broker.
        controller_ids: the controllers, of which one is active.
        cluster_id: must equal the controller's.
        incarnation_id: drawn by the process at start.
        log_dirs: directory ids, sorted.
        previous_broker_epoch: from the clean-shutdown files, read before logs are loaded; ``None`` if they prove none.
        properties: Kafka's properties of this node.
        switches: the rules of the era.
    """

    broker_id: BrokerId
    controller_ids: tuple[NodeId, ...]
    cluster_id: str
    incarnation_id: IncarnationId
    log_dirs: tuple[str, ...] = ()
    previous_broker_epoch: BrokerEpoch | None = None
    properties: NodeProperties = NodeProperties()
    switches: Switches = Switches()

    @property
    def transaction_version(self) -> int:
        """Level of ``transaction.version``: from 2 on the end of a transaction raises the producer epoch (KIP-890)."""
        return 2 if self.switches.epoch_per_transaction else 1

"""The start parameters of the controller in a broker process."""

import msgspec

from laststand.emulator.core.types import BrokerId
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules


class ControllerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One frozen configuration per process.

    Attributes:
        broker_id: the broker that hosts it.
        rules: of its release.
        ibp: the protocol version of its requests and nodes.
        unclean_leader_election_enable: for topics without the property.
        auto_leader_rebalance_enable: whether leaderships return to preferred replicas by themselves.
        leader_imbalance_check_interval_ms: between two checks for imbalanced leaders; the first comes soon after an
            election.
        leader_imbalance_per_broker_percentage: of the partitions that a broker should lead; if more are elsewhere, they
            return.
    """

    broker_id: BrokerId
    rules: ZooKeeperRules = ZooKeeperRules()
    ibp: InterBrokerProtocol = InterBrokerProtocol()
    unclean_leader_election_enable: bool = False
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_ms: int = 300_000
    leader_imbalance_per_broker_percentage: int = 10

"""All checks of one run, and the state that they share."""

from collections import defaultdict
from collections.abc import Callable

from laststand.emulator.core import effects
from laststand.emulator.core.coordinator_partitions import partition_of
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.clients import ClientChecks
from laststand.emulator.simulator.oracle.configuration import Configuration
from laststand.emulator.simulator.oracle.conjunctions import Conjunctions
from laststand.emulator.simulator.oracle.controller_rules import ControllerRules
from laststand.emulator.simulator.oracle.coordinators import CoordinatorChecks
from laststand.emulator.simulator.oracle.copies import Copies
from laststand.emulator.simulator.oracle.durability import DurabilityChecks
from laststand.emulator.simulator.oracle.finding import Alarm
from laststand.emulator.simulator.oracle.group_positions import GroupPositions
from laststand.emulator.simulator.oracle.guarantee import GuaranteeLedger
from laststand.emulator.simulator.oracle.leader_rules import LeaderRules
from laststand.emulator.simulator.oracle.logs import LogChecks
from laststand.emulator.simulator.oracle.losses import LossLedger
from laststand.emulator.simulator.oracle.memberships import MembershipChecks
from laststand.emulator.simulator.oracle.metadata import MetadataChecks
from laststand.emulator.simulator.oracle.promptness import Promptness
from laststand.emulator.simulator.oracle.resumed_readers import ResumedReaders
from laststand.emulator.simulator.oracle.tally import Tally
from laststand.emulator.simulator.oracle.transaction_logs import TransactionLogChecks
from laststand.emulator.simulator.oracle.transactions import TransactionChecks
from laststand.emulator.simulator.oracle.truth import PartitionTruth


class Checks:
    """All checks of one run.

    Args:
        on_alarm: is called with each alarm.

    Attributes:
        cluster: the watched cluster; set by ``attach``.
        configuration: of the cluster; set by ``attach``.
        outstanding: ledger of the outstanding brokers, from which each new partition's ledger starts.
        truths: by partition; a missing one is created when it is read.
        alarm_log: all alarms.
        copies: the nodes that held each batch.
        losses: acknowledged batches that are lost.
        tally: counts of events.
        conjunctions: counts of coinciding events.
    """

    def __init__(self, on_alarm: Callable[[Alarm], None] | None) -> None:
        self.cluster: SimulatedCluster
        self.configuration: Configuration
        self.outstanding = GuaranteeLedger()
        self.truths: defaultdict[TopicPartition, PartitionTruth] = defaultdict(
            lambda: PartitionTruth(self.outstanding.successor())
        )
        self.alarm_log = AlarmLog(
            self.truths,
            lambda: self.cluster.steps,
            on_alarm,
            lambda check_id, node_id: self.cluster.promised_by_node(check_id, node_id),
        )
        self.tally = Tally()
        self.conjunctions = Conjunctions(self.tally.mark, lambda: self.cluster.now_ms)
        self.copies = Copies()
        self.losses = LossLedger()
        self.durability = DurabilityChecks(self.alarm_log, self.truths, self.copies, self.losses)
        self.clients = ClientChecks(self.alarm_log, self.truths)
        group_positions = GroupPositions()
        self.transactions = TransactionChecks(self.alarm_log, self.truths, group_positions)
        self.coordinators = CoordinatorChecks(self.alarm_log)
        self.transaction_logs = TransactionLogChecks(self.alarm_log)
        self.memberships = MembershipChecks(self._report_group, group_positions)
        self.resumed_readers = ResumedReaders(self.alarm_log)
        self.controller = ControllerRules(self.alarm_log)
        self.metadata = MetadataChecks(self.alarm_log)
        self.leaders = LeaderRules(self.alarm_log, self.metadata)
        self.logs = LogChecks(self.alarm_log, self.truths, self.durability.deletions)
        self.promptness = Promptness(self.alarm_log, self.truths, self.durability, self.tally.mark)

    def attach(self, cluster: SimulatedCluster) -> None:
        """Says which cluster is watched."""
        self.cluster = cluster
        self.configuration = Configuration(cluster.properties)
        for checks in (
            self.durability,
            self.controller,
            self.coordinators,
            self.metadata,
            self.leaders,
            self.logs,
            self.transaction_logs,
        ):
            checks.attach(cluster)
        self.promptness.attach(cluster, self.configuration)

    def _report_group(self, check_id: str, group_id: str, sentence: str) -> None:
        count = self.cluster.image.partition_counts.get(OFFSETS_TOPIC, 1)
        name = partition_of(group_id, OFFSETS_TOPIC, count)
        self.alarm_log.report(check_id, name, sentence, guarantee=self.transactions.guarantee(name))

    def answered(self, node: BrokerNode, answer: effects.SendResponse) -> None:
        """Does nothing: no check of a KRaft cluster needs a broker's answers."""

"""Actions on processes: start, stop, kill, pause and resume them, take their power, change their clocks."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

from laststand.emulator.core import events, inputs
from laststand.emulator.core.eras import rule_texts
from laststand.emulator.core.promises import PROMISES, Keeper, Member, is_promised_by_all
from laststand.emulator.core.properties import NodeProperties, property_texts
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerId, CauseId, IncarnationId, NodeId, NodeRole
from laststand.emulator.plan import actions
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.simulator.disk.power_loss import exact_loss
from laststand.emulator.simulator.network.streams import Streams
from laststand.emulator.simulator.network.wire import Wire
from laststand.emulator.simulator.nodes.event_log import EventLog
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import BrokerNode, InputT, MetadataNode, Node, StepNode, incarnation_name


class ArmTimer(Protocol):
    """Sets a node's timer to its next deadline."""

    def __call__(self, node: Node[InputT], /) -> None:
        """Sets the timer of a node that runs."""
        ...


class Processes:
    """Begins and ends the processes of all nodes, and writes that into the event log.

    Args:
        nodes: all brokers.
        metadata_node: returns the node that has the metadata now.
        switches: the rules of nodes that have none of their own.
        properties: of every node.
        queue: virtual time.
        event_log: where the events are written.
        wire: drops the requests of a process that ends.
        streams: the metadata streams; they end with the process that serves or reads them.
        step: hands an input to a node.
        arm: sets a node's timer.
        partner: returns the other node in a node's process, in combined mode.

    Attributes:
        own_rules: rules of nodes that follow another era, from their next processes on.
        broker_rules: rules of each broker's processes so far, in order.
        controller_rules: rules of all controller processes so far.
    """

    def __init__(
        self,
        nodes: Mapping[BrokerId, BrokerNode],
        metadata_node: Callable[[], MetadataNode],
        *,
        switches: Switches,
        properties: NodeProperties,
        queue: EventQueue,
        event_log: EventLog,
        wire: Wire,
        streams: Streams,
        step: StepNode,
        arm: ArmTimer,
        partner: Callable[[NodeId], BrokerNode | MetadataNode | None],
    ) -> None:
        self._partner = partner
        self._last_to_stop: set[NodeId] = set()
        self._nodes = nodes
        self._metadata_node = metadata_node
        self._switches = switches
        self._properties = properties
        self.own_rules: dict[NodeId, Switches] = {}
        self.broker_rules: defaultdict[NodeId, list[Switches]] = defaultdict(list)
        self.controller_rules: dict[Switches, None] = {}
        self._role_of_metadata = NodeRole.CONTROLLER
        self._texts: dict[Switches, dict[str, str]] = {}
        self._property_texts = property_texts(properties)
        self._queue = queue
        self._event_log = event_log
        self._wire = wire
        self._streams = streams
        self._step = step
        self._arm = arm

    # --- Begin and end ----------------------------------------------------------------------------------------------

    def start(self, node: BrokerNode | MetadataNode) -> None:
        """Starts a process on its disk; no effect if one runs, or if it refuses to start on that disk."""
        if node.core is not None:
            return
        if isinstance(node, BrokerNode):
            self._start_broker(node)
        else:
            self._start_controller(node)

    def _start_broker(self, node: BrokerNode) -> None:
        if self.still_stops(node):
            return
        broker_id = node.broker_id
        node.boot(self.rules_of(broker_id), self._properties)
        self._begin(node, role=NodeRole.BROKER, incarnation_id=incarnation_name(broker_id, node.incarnation))
        if node.disk.room == 0:  # it ends at once where the disk is full
            self.end(node, events.IncarnationEnd.KILLED)
        self._step(node, inputs.Started(cause_id=CauseId(f"start-{broker_id}")))

    def _start_controller(self, node: MetadataNode) -> None:
        if node.start_refusal(self.rules_of(node.node_id)) is not None:
            return
        unreported = node.boot(self.rules_of(node.node_id), self._properties)
        self._begin(node, role=node.role, incarnation_id=IncarnationId(f"{node.role}-{node.incarnation}"))
        for event in unreported:
            self._event_log.write(node, event)
        self._step(node, inputs.Started(cause_id=CauseId("start")))

    def still_stops(self, node: BrokerNode) -> bool:
        """Returns whether a broker has stopped, while the controller in its process has not."""
        partner = self._partner(node.node_id)
        return partner is not None and partner.node_id in self._last_to_stop

    def stop(self, node: BrokerNode | MetadataNode) -> None:
        """Asks a process to shut down in order."""
        if isinstance(node, BrokerNode):
            self._step(node, inputs.ShutdownRequested(cause_id=CauseId(f"stop-{node.broker_id}")))
        else:
            self._step(node, inputs.ShutdownRequested(cause_id=CauseId("stop")))

    def kill(self, node: BrokerNode | MetadataNode) -> None:
        """Ends a process at once; the page cache survives."""
        self.end(node, events.IncarnationEnd.KILLED)

    def power_loss(self, node: BrokerNode | MetadataNode, loss: DiskLoss) -> None:
        """Ends a process at once, if one runs, and loses its unsynced data: of a controller, its last records."""
        self.end(node, events.IncarnationEnd.POWER_LOST)
        if isinstance(node, MetadataNode):
            node.lose_unsynced()
            return
        broker_id = node.broker_id
        before = {name: log.log_end_offset for name, log in node.disk.logs.items()}
        node.disk.lose_power(
            loss.keep,
            exact_loss(loss, broker_id, node.disk),
            model=loss.disk,
            holes_end_logs=self.rules_of(broker_id).holes_end_logs,
        )
        for name, log in node.disk.logs.items():
            self._event_log.note(
                events.PowerLost(
                    cause_id=self._event_log.cause_id,
                    topic=name.topic,
                    partition=name.partition,
                    topic_id=log.topic_id,
                    lost_node=broker_id,
                    lost_incarnation=node.incarnation,
                    keep=loss.keep.value,
                    old_end_offset=before[name],
                    new_end_offset=log.log_end_offset,
                )
            )

    def replace_disk(self, node: BrokerNode | MetadataNode) -> None:
        """Ends a process at once, if one runs, and gives it an empty disk."""
        self.end(node, events.IncarnationEnd.POWER_LOST)
        if isinstance(node, BrokerNode):
            node.disk.replace()
        else:
            node.replace_disk()

    def crash(self, node: BrokerNode, crash: actions.CrashWithin[NodeId]) -> None:
        """Ends a broker's process as an earlier ``crash-within`` says, and writes the fault."""
        loss, partner = crash.loss, self._partner(node.node_id)
        if loss is None:
            self.kill(node)
        else:
            self.power_loss(node, loss)
            if isinstance(partner, MetadataNode):
                self.power_loss(partner, loss)
        for each in (node,) if partner is None else (node, partner):
            self._event_log.note(
                events.FaultInjected(
                    cause_id=self._event_log.cause_id,
                    fault="kill" if loss is None else "power_loss",
                    target=str(each.node_id),
                    nodes=(each.node_id,),
                    effect="simulated",
                    metadata_offset=self._metadata_node().committed_end_offset,
                    begun_ns=self._event_log.now_ns,
                    proved_ns=self._event_log.now_ns,
                )
            )

    # --- Any node ---------------------------------------------------------------------------------------------------

    def pause(self, node: Node[Any]) -> None:
        """Stops a process by a signal; no effect if none runs."""
        if node.core is not None and not node.is_paused:
            node.is_paused = True
            self._wire.fall_silent(node.node_id)

    def resume(self, node: Node[Any]) -> None:
        """Resumes a paused process with the inputs that have arrived since."""
        if not node.is_paused:
            return
        node.is_paused = False
        self._wire.end_silence(node.node_id)
        waiting, node.inbox = node.inbox, []
        for incoming in waiting:
            self._step(node, incoming)
        if node.core is not None:
            self._arm(node)

    def set_clock_rate(self, node: Node[Any], rate_ppm: int) -> None:
        """Changes the rate of a node's clock."""
        node.clock.set_rate(rate_ppm, now_ms=self._queue.now_ms)
        if node.core is not None and not node.is_paused:
            self._arm(node)

    def let_clock_jump(self, node: Node[Any], by_ms: int) -> None:
        """Sets a node's clock forward."""
        node.clock.jump(by_ms, now_ms=self._queue.now_ms)
        if node.core is not None and not node.is_paused:
            self._arm(node)

    def rules_of(self, node_id: NodeId) -> Switches:
        """Returns the rules of a node's process; of a node that is down, those of its next process."""
        return self.own_rules.get(node_id, self._switches)

    def promised_by_all(self, check_id: str) -> bool:
        """Returns whether every process so far had the rules under which a check's promise is made."""
        return is_promised_by_all(check_id, self._all_members())

    def promised_by_node(self, check_id: str, node_id: NodeId | None) -> bool:
        """Returns whether the processes that a check depends on had its rules, for a finding about ``node_id``."""
        match PROMISES[check_id].keeper:
            case Keeper.CLUSTER:
                return False
            case Keeper.CONTROLLERS:
                members = self._all_members()
            case Keeper.BROKER:
                members = self._brokers(self._own(node_id))
            case Keeper.PROCESS:
                members = self._brokers(self._own(node_id)[-1:])
        return is_promised_by_all(check_id, members)

    def _own(self, node_id: NodeId | None) -> list[Switches]:
        return [] if node_id is None else self.broker_rules[node_id]

    def _all_members(self) -> list[Member]:
        brokers = {rules for each in self.broker_rules.values() for rules in each}
        others = [Member(self._role_of_metadata, self._text_of(each)) for each in self.controller_rules]
        return [*others, *self._brokers(brokers)]

    def _brokers(self, rules: Iterable[Switches]) -> list[Member]:
        return [Member(NodeRole.BROKER, self._text_of(each)) for each in rules]

    def _text_of(self, rules: Switches) -> dict[str, str]:
        if rules not in self._texts:
            self._texts[rules] = rule_texts(rules)
        return self._texts[rules]

    def _begin(self, node: Node[InputT], *, role: NodeRole, incarnation_id: IncarnationId) -> None:
        rules = self.rules_of(node.node_id)
        if role is NodeRole.BROKER:
            self.broker_rules[node.node_id].append(rules)
        else:
            self._role_of_metadata = role
            self.controller_rules[rules] = None
        texts = self._text_of(rules)
        self._event_log.note(
            events.IncarnationStarted(
                cause_id=self._event_log.cause_id,
                started_node=node.node_id,
                started_incarnation=node.incarnation,
                event_file=f"{node.node_id}-{node.incarnation}.jsonl",
                switches=texts if node.node_id in self.own_rules else {},
            )
        )
        self._event_log.write(
            node,
            events.NodeStarted(
                cause_id=self._event_log.cause_id,
                role=role,
                incarnation_id=incarnation_id,
                switches=texts,
                properties={**self._property_texts, **node.more_properties},
                wall_time_ns=0,
            ),
        )

    def end(self, node: Node[Any], end: events.IncarnationEnd) -> None:
        """Ends a node's process at once, in combined mode with its other node; no effect if none runs."""
        if node.core is None:
            return
        if end is events.IncarnationEnd.STOPPED:
            self._event_log.write(node, events.NodeStopped(cause_id=self._event_log.cause_id))
        node.end()
        self._last_to_stop.discard(node.node_id)
        self._wire.lose_process(node.node_id)
        if isinstance(node, BrokerNode):
            self._streams.forget(node)
        elif isinstance(node, MetadataNode):
            self._streams.lose_all(node.node_id)
        self._event_log.note(
            events.IncarnationEnded(
                cause_id=self._event_log.cause_id,
                ended_node=node.node_id,
                ended_incarnation=node.incarnation,
                end=end,
                exit_code=0 if end is events.IncarnationEnd.STOPPED else None,
                metadata_offset=self._metadata_node().committed_end_offset,
            )
        )
        partner = self._partner(node.node_id)
        if partner is None or partner.core is None:
            return
        if end is events.IncarnationEnd.STOPPED and isinstance(partner, MetadataNode):
            # A process stops its broker first, as Kafka's does, and then its controller.
            self._last_to_stop.add(partner.node_id)
            self._queue.after(0, partial(self._stop_after, partner, partner.incarnation))
        else:
            self.end(partner, end)

    def _stop_after(self, node: MetadataNode, incarnation: int) -> None:
        if node.core is not None and node.incarnation == incarnation:
            self.stop(node)

"""One broker process of a ZooKeeper cluster: a broker and a controller that share a session.

There is no process that is only a controller: each hosts one, which acts while it is elected, so that killing or
pausing the controller is killing or pausing a broker. The broker opens its logs, then the controller registers it and
stands for election; both send to ZooKeeper, the controller under even correlation ids and the broker under odd ones.
Requests on behalf of administrators have negative ones.
"""

from typing import TypeAlias

from laststand.emulator.core import effects, inputs
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.zookeeper.broker import ZooKeeperBroker
from laststand.emulator.core.broker.zookeeper.exchange import (
    AnswerControl,
    AskController,
    BrokerRegisteredAs,
    LogsAreOpen,
    TopicConfigChanged,
    ZooKeeperBrokerInput,
)
from laststand.emulator.core.coordinator_records import EncodeRecords
from laststand.emulator.core.timers import earliest_of
from laststand.emulator.core.zookeeper import exchange, operations
from laststand.emulator.core.zookeeper.admin_manager import AdminAsked, AdminManager, AdminSettings
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.controller import ZooKeeperController
from laststand.emulator.core.zookeeper.controller.exchange import (
    AnswerController,
    ControlAnswered,
    ControlFailed,
    ControllerAsked,
    ControllerInput,
    Registered,
    RegistrationRefused,
    SendControlRequest,
    TimeCame,
)
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules

ProcessInput: TypeAlias = ZooKeeperBrokerInput | ControllerInput | AdminAsked | exchange.ZooKeeperInput
ProcessEffect: TypeAlias = (
    effects.BrokerEffect
    | exchange.ZooKeeperEffect
    | AnswerControl
    | AskController
    | AnswerController
    | SendControlRequest
)


class ZooKeeperProcess:
    """One incarnation.

    Attributes:
        broker: for reading only.
        controller: for reading only.
        admin_manager: for reading only.
    """

    def __init__(
        self, config: BrokerConfig, encode_records: EncodeRecords, rules: ZooKeeperRules, ibp: InterBrokerProtocol
    ) -> None:
        self.broker = ZooKeeperBroker(config, encode_records, rules, ibp)
        self.controller = ZooKeeperController(
            ControllerConfig(
                broker_id=config.broker_id,
                rules=rules,
                ibp=ibp,
                unclean_leader_election_enable=config.properties.unclean_leader_election_enable,
                auto_leader_rebalance_enable=config.properties.auto_leader_rebalance_enable,
                leader_imbalance_check_interval_ms=1_000 * config.properties.leader_imbalance_check_interval_seconds,
            )
        )
        self.admin_manager = AdminManager(
            AdminSettings(
                node_id=config.broker_id,
                properties=config.properties,
                switches=config.switches,
                rules=rules,
                ibp=ibp,
            ),
            is_controller=lambda: self.controller.is_active,
        )

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None`` if nothing waits for the time."""
        return earliest_of([each.next_deadline_ms() for each in (self.broker, self.controller, self.admin_manager)])

    def step(self, incoming: ProcessInput, *, now_ms: int) -> list[ProcessEffect]:
        """Reacts to an input; returns what is to be done, in order."""
        match incoming:
            case AdminAsked():
                return self._step_admin_manager(incoming, now_ms=now_ms)
            case ControllerAsked() | ControlAnswered() | ControlFailed():
                return self._step_controller(incoming, now_ms=now_ms)
            case exchange.SessionEstablished():
                return self._step_controller(incoming, now_ms=now_ms) + self._step_admin_manager(
                    incoming, now_ms=now_ms
                )
            case exchange.ZooKeeperAnswered(correlation_id=correlation_id):
                if correlation_id < 0:
                    return self._step_admin_manager(incoming, now_ms=now_ms)
                if correlation_id % 2:
                    return self._step_broker(incoming, now_ms=now_ms)
                return self._step_controller(incoming, now_ms=now_ms)
            case exchange.ZooKeeperConnectionLost() | exchange.ZooKeeperReconnected() | exchange.SessionExpired():
                effects = self._step_broker(incoming, now_ms=now_ms)
                effects += self._step_controller(incoming, now_ms=now_ms)
                return effects + self._step_admin_manager(incoming, now_ms=now_ms)
            case inputs.TimerFired(cause_id=cause_id) | TimeCame(cause_id=cause_id):
                effects = self._step_broker(inputs.TimerFired(cause_id=cause_id), now_ms=now_ms)
                effects += self._step_controller(TimeCame(cause_id), now_ms=now_ms)
                return effects + self._step_admin_manager(TimeCame(cause_id), now_ms=now_ms)
            case exchange.WatchFired():
                return self._watch_fired(incoming, now_ms=now_ms)
            case _:
                return self._step_broker(incoming, now_ms=now_ms)

    def _watch_fired(self, fired: exchange.WatchFired, *, now_ms: int) -> list[ProcessEffect]:
        event = fired.event
        topic = paths.topic_of_config_node(event.path) if isinstance(event, operations.NodeChanged) else None
        effects: list[ProcessEffect] = []
        if topic is not None:
            effects += self._step_broker(TopicConfigChanged(cause_id=fired.cause_id, topic=topic), now_ms=now_ms)
        return effects + self._step_controller(fired, now_ms=now_ms)

    def _step_admin_manager(
        self, incoming: AdminAsked | TimeCame | exchange.ZooKeeperInput, *, now_ms: int
    ) -> list[ProcessEffect]:
        return [*self.admin_manager.step(incoming, now_ms=now_ms)]

    def _step_broker(self, incoming: ZooKeeperBrokerInput, *, now_ms: int) -> list[ProcessEffect]:
        done: list[ProcessEffect] = []
        for effect in self.broker.step(incoming, now_ms=now_ms):
            if isinstance(effect, LogsAreOpen):
                done.append(exchange.OpenSession())
            else:
                done.append(effect)
        return done

    def _step_controller(self, incoming: ControllerInput, *, now_ms: int) -> list[ProcessEffect]:
        done: list[ProcessEffect] = []
        for effect in self.controller.step(incoming, now_ms=now_ms):
            match effect:
                case Registered(broker_epoch=broker_epoch):
                    registered = BrokerRegisteredAs(cause_id=incoming.cause_id, broker_epoch=broker_epoch)
                    done += self._step_broker(registered, now_ms=now_ms)
                case RegistrationRefused():
                    done.append(effects.StopNode())
                case _:
                    done.append(effect)
        return done

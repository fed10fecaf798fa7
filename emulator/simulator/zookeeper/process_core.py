"""A broker process as a core of the simulated cluster: ``NetworkedProcess`` and its ZooKeeper client, as one machine.

The client's traffic with the server consists of ordinary requests, too. So faults of links, pauses, clocks and crashes
mean the same as in a KRaft cluster. The wire looks into no message but a fetch, so it carries these as it carries those
of KRaft.
"""

from typing import cast

from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.timers import earliest_of
from laststand.emulator.core.types import CorrelationId
from laststand.emulator.core.zookeeper import exchange
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol
from laststand.emulator.core.zookeeper.process import ZooKeeperProcess
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules
from laststand.emulator.core.zookeeper.traffic import CORRELATION_ID_STEP, NetworkedInput, NetworkedProcess
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.simulator.network import session_messages
from laststand.emulator.simulator.nodes.batch_registry import ENCODE_RECORDS
from laststand.emulator.simulator.zookeeper.session_client import CAUSE, Asked, SessionClient


class ZooKeeperProcessCore:
    """One incarnation.

    Args:
        config: of the broker.
        rules: of the cluster.
        ibp: its protocol version.
        session_timeout_ms: of its ZooKeeper sessions.

    Attributes:
        process: for reading only.
        client: of ZooKeeper; for reading only.
    """

    def __init__(
        self, config: BrokerConfig, rules: ZooKeeperRules, ibp: InterBrokerProtocol, *, session_timeout_ms: int
    ) -> None:
        self.process = ZooKeeperProcess(config, ENCODE_RECORDS, rules, ibp)
        self.client = SessionClient(timeout_ms=session_timeout_ms)
        self._networked = NetworkedProcess(self.process)
        self._asked: dict[CorrelationId, Asked] = {}
        self._next_correlation_id = 1  # odd, as the process's are even
        self._effects: list[effects.Effect] = []
        self._now_ms = 0

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None`` if nothing waits for the time."""
        return earliest_of((self.process.next_deadline_ms(), self.client.next_deadline_ms()))

    def step(self, incoming: inputs.BrokerInput, *, now_ms: int) -> list[effects.Effect]:
        """Reacts to an input; returns what is to be done, in order."""
        self._now_ms = now_ms
        self._effects = []
        asked = None
        if isinstance(incoming, inputs.ResponseReceived | inputs.RequestFailed):
            asked = self._asked.pop(incoming.correlation_id, None)
        if asked is not None:
            self._conclude(asked, incoming)
        else:
            if isinstance(incoming, inputs.TimerFired):
                self.client.time_came(now_ms=now_ms)
            self._step_process(incoming)
        self._listen()
        return self._effects

    def _step_process(self, incoming: NetworkedInput) -> None:
        for effect in self._networked.step(incoming, now_ms=self._now_ms):
            match effect:
                case exchange.ZooKeeperRequest():
                    self.client.ask(effect)
                case exchange.OpenSession():
                    self.client.open()
                case exchange.CloseSession():
                    self.client.close()
                    self._listen()  # the end of the process comes next
                case _:
                    self._effects.append(effect)

    def _listen(self) -> None:
        """Delivers to the process what its client received, and sends the client's requests."""
        while self.client.heard or self.client.outgoing:
            while self.client.heard:
                self._step_process(self.client.heard.popleft())
            outgoing, self.client.outgoing = self.client.outgoing, []
            for asked in outgoing:
                self._ask_zookeeper(asked)

    # --- The session ----------------------------------------------------------------------------------------------

    def _ask_zookeeper(self, asked: Asked) -> None:
        correlation_id = CorrelationId(self._next_correlation_id)
        self._next_correlation_id += CORRELATION_ID_STEP
        self._asked[correlation_id] = asked
        self._effects.append(
            effects.SendRequest(
                destination=CONTROLLER,
                correlation_id=correlation_id,
                request=cast(messages.Request, asked[0]),
                timeout_ms=self.client.request_timeout_ms,
                cause_id=CAUSE,
            )
        )

    def _conclude(self, asked: Asked, outcome: inputs.BrokerInput) -> None:
        if isinstance(outcome, inputs.ResponseReceived):
            self.client.answered(asked, cast(session_messages.SessionAnswer, outcome.response))
        else:
            self.client.failed(asked, now_ms=self._now_ms)

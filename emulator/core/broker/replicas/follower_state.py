"""The leader's view of one follower, learned from its fetches alone (Kafka's ``Replica``).

A follower is caught up if its log reaches the leader's log end offset, or reached the leader's log end offset of the
time at some moment of the last ``replica.lag.time.max.ms``.
"""

from laststand.emulator.core.types import BrokerEpoch, BrokerId, LeaderEpoch, Offset


class FollowerState:
    """Progress of one follower.

    Attributes:
        log_end_offset: where it last fetched from; ``None`` while unknown.
        log_start_offset: the follower's log start offset, by its last fetch.
        last_caught_up_ms: latest time at which its log is known to have reached the leader's log end; 0 means never.
        broker_epoch: broker epoch in the last fetch; ``None`` if the fetch carried none.
        learned_in_epoch: leader epoch in which ``log_end_offset`` was learned.
    """

    __slots__ = (
        "_last_fetch_leader_end_offset",
        "_last_fetch_ms",
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "learned_in_epoch",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: BrokerId) -> None:
        self.broker_id = broker_id
        self.log_end_offset: Offset | None = None
        self.log_start_offset: Offset | None = None
        self.last_caught_up_ms = 0
        self.broker_epoch: BrokerEpoch | None = None
        self.learned_in_epoch: LeaderEpoch | None = None
        self._last_fetch_leader_end_offset = Offset(-1)
        self._last_fetch_ms = 0

    def forget(self, *, last_caught_up_ms: int) -> None:
        """Resets the state for a leader that did not lead in the previous epoch."""
        self.log_end_offset = self.log_start_offset = None
        self.broker_epoch = None
        self.learned_in_epoch = None
        self.last_caught_up_ms = last_caught_up_ms
        self._last_fetch_leader_end_offset = Offset(-1)
        self._last_fetch_ms = 0

    def restart_lag_clock(self, *, last_caught_up_ms: int, leader_end_offset: Offset) -> None:
        """Keeps offsets but resets times, as the same leader continues in the next epoch."""
        self.last_caught_up_ms = self._last_fetch_ms = last_caught_up_ms
        self._last_fetch_leader_end_offset = leader_end_offset

    def update(
        self,
        *,
        fetch_offset: Offset,
        log_start_offset: Offset | None,
        leader_end_offset: Offset,
        leader_epoch: LeaderEpoch,
        broker_epoch: BrokerEpoch | None,
        now_ms: int,
    ) -> None:
        """Records an accepted fetch; ``leader_end_offset`` is the leader's log end offset before the read."""
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self._last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self._last_fetch_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self.learned_in_epoch = leader_epoch
        self._last_fetch_leader_end_offset = max(leader_end_offset, self._last_fetch_leader_end_offset)
        self._last_fetch_ms = now_ms

    def is_caught_up(self, *, log_end_offset: Offset, now_ms: int, lag_time_max_ms: int) -> bool:
        """Returns whether the follower is caught up. In a partition without appends, no follower falls behind."""
        return self.log_end_offset == log_end_offset or now_ms - self.last_caught_up_ms <= lag_time_max_ms

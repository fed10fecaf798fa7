"""Records for logs whose leaders were elected uncleanly, about transactions and groups (KIP-704)."""

from collections.abc import Iterable, Iterator, Sequence

from laststand.emulator.core.broker.groups.recovery import fences
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.transactions import metadata as transitions
from laststand.emulator.core.broker.transactions.inquiry import Ended, TransactionInquiry
from laststand.emulator.core.coordinator_records import CoordinatorRecord, EncodeRecords, LoadedRecord
from laststand.emulator.core.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_records import SessionsEnded, TransactionMetadata, TransactionState
from laststand.emulator.core.types import GroupRecovery, TopicPartition, TxnRecovery


class LogMender:
    """Decides by the switches which records a log needs (``leader_recovery.Mender``).

    Attributes:
        encode: makes batches.
    """

    def __init__(self, config: BrokerConfig, inquiry: TransactionInquiry, encode: EncodeRecords) -> None:
        self._switches = config.switches
        self._raises_epoch = config.transaction_version >= 2
        self._inquiry = inquiry
        self.encode = encode

    def find_ends(self, turn: Turn, partition: Partition, done: Ended) -> None:
        """Calls ``done`` with the markers for the transactions that are open in a log."""
        if not self._switches.recovery_aborts_transactions:
            done(turn, ())
        elif self._switches.recovery_asks_coordinator:
            self._inquiry.ask(turn, partition, done)
        else:
            done(turn, self._inquiry.guesses(partition))

    def needs_records(self, name: TopicPartition) -> bool:
        """Returns whether ``missing`` may have records for a partition."""
        if name.topic == TRANSACTIONS_TOPIC:
            return self._switches.txn_recovery is not TxnRecovery.OFF
        return name.topic == OFFSETS_TOPIC and self._switches.group_recovery is not GroupRecovery.OFF

    def missing(
        self, name: TopicPartition, records: Sequence[LoadedRecord], *, now_ms: int
    ) -> Sequence[CoordinatorRecord]:
        """Returns the records that the log of a coordinator needs."""
        if name.topic == TRANSACTIONS_TOPIC:
            ended = ends_of_sessions(records) if self._switches.txn_recovery is TxnRecovery.BUMP_ALL else ()
            return *aborts(records, raises_epoch=self._raises_epoch, now_ms=now_ms), *ended
        return tuple(fences(records, self._switches.group_recovery, now_ms=now_ms))


def aborts(records: Sequence[LoadedRecord], *, raises_epoch: bool, now_ms: int) -> Iterator[TransactionMetadata]:
    """Yields decisions to abort transactions that look ongoing: their actual decisions may be lost.

    Args:
        records: of the log; the last record of each id counts.
        raises_epoch: as in ``transitions.aborted``.
        now_ms: the time.
    """
    for each in _latest(records):
        if each.state is TransactionState.ONGOING:
            try:
                yield transitions.aborted(each, raises_epoch=raises_epoch, now_ms=now_ms)
            except transitions.TransitionError:
                continue  # it has no epoch left (KAFKA-20090)


def ends_of_sessions(records: Sequence[LoadedRecord]) -> Iterator[SessionsEnded]:
    """Yields records that retire each transactional id's producer id: a later session may have been lost."""
    for each in _latest(records):
        yield SessionsEnded(transactional_id=each.transactional_id, producer_id=each.producer_id)


def _latest(records: Sequence[LoadedRecord]) -> Iterable[TransactionMetadata]:
    latest: dict[str, TransactionMetadata] = {}
    for record, _ in records:
        match record:
            case TransactionMetadata(transactional_id=transactional_id):
                latest[transactional_id] = record
            case _:
                pass
    return latest.values()

"""Schedules a producer's records: the same for the client process and for simulated clients.

At each tick the records that are due become batches, partition by partition in turn. Where the state machine has no
room, or no topic is there yet, the producer waits, as Kafka's does in ``send``, and does not catch up. Batches of
``produce`` steps come on top. Record ids count up from 0.
"""

from collections.abc import Iterator
from typing import Final

from laststand.emulator.client.config import ProducerConfig, TransactionPaceConfig
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client import steps
from laststand.emulator.core.client.producer import Producer
from laststand.emulator.core.client.transactional_producer import TransactionalProducer
from laststand.emulator.core.types import CauseId, TopicPartition

TICK_MS: Final = 20
"""Interval at which a transaction may begin."""


class Pace:
    """One producer's records.

    Args:
        config: the producer's rate and partitions.
        now_s: when it starts.
        producer: the state machine that takes the records.
    """

    def __init__(self, config: ProducerConfig, *, now_s: float, producer: Producer) -> None:
        self._config = config
        self._producer = producer
        self._started_s = now_s
        self._made = 0
        self._next_record_id = 0
        self._next_partition = 0
        self._batch_records_max = max(1, config.batch_size // config.record_size)

    def tick(self, now_s: float) -> Iterator[steps.RecordsOffered]:
        """Yields the batches that are due, as long as there is room for the next."""
        partitions = [each for each in self._config.partitions if self._producer.may_send_to(each)]
        if not partitions or not self._producer.has_room:
            self._started_s, self._made = now_s, 0
            return
        due = int((now_s - self._started_s) * self._config.rate) - self._made
        self._made += due
        while due > 0 and self._producer.has_room:
            count = min(due, self._batch_records_max)
            partition = partitions[self._next_partition % len(partitions)]
            self._next_partition += 1
            yield self.make(partition, count)
            due -= count

    def make(self, partition: TopicPartition, record_count: int) -> steps.RecordsOffered:
        """Returns a batch of the next records."""
        first = self._next_record_id
        self._next_record_id += record_count
        return steps.RecordsOffered(
            cause_id=steps.operation_id(self._config.name, first),
            partition=partition,
            first_record_id=first,
            record_count=record_count,
        )


class TransactionMaker:
    """Names the transactions and consumptions of one producer."""

    def __init__(self, producer: str) -> None:
        self._producer = producer
        self._transactions = 0
        self._consumptions = 0

    def transaction(
        self,
        partitions: tuple[TopicPartition, ...],
        *,
        records: int,
        result: TransactionResult,
        source: steps.Source | None = None,
    ) -> steps.TransactionOffered:
        """Returns the next transaction; arguments as in ``TransactionOffered``."""
        cause_id = CauseId(f"{self._producer}:transaction:{self._transactions}")
        self._transactions += 1
        return steps.TransactionOffered(
            cause_id=cause_id, partitions=partitions, records=records, result=result, source=source
        )

    def consumption(self, source: steps.Source) -> steps.ConsumptionOffered:
        """Returns the next consumption."""
        cause_id = CauseId(f"{self._producer}:consumption:{self._consumptions}")
        self._consumptions += 1
        return steps.ConsumptionOffered(cause_id=cause_id, source=source)


class TransactionPace:
    """The transactions that a producer makes by itself, one after the other; missed ones are not made up for.

    Args:
        config: partitions, sizes and rate.
        maker: makes their names.
        producer: the state machine that executes them.
    """

    def __init__(
        self, config: TransactionPaceConfig, *, maker: TransactionMaker, producer: TransactionalProducer
    ) -> None:
        self._config = config
        self._maker = maker
        self._producer = producer
        self._not_before_s = 0.0
        self._made = 0

    def tick(self, now_s: float) -> steps.TransactionOffered | None:
        """Returns the transaction that is due, if one is and none is under way."""
        if self._producer.unfinished or now_s < self._not_before_s:
            return None
        config = self._config
        self._not_before_s = now_s + 1 / config.rate
        first = self._made * config.width
        self._made += 1
        is_aborted = config.abort_every > 0 and self._made % config.abort_every == 0
        return self._maker.transaction(
            tuple(config.partitions[(first + number) % len(config.partitions)] for number in range(config.width)),
            records=config.records,
            result=TransactionResult.ABORT if is_aborted else TransactionResult.COMMIT,
        )

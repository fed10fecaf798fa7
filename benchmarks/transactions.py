"""Transactions on real processes: how long one takes from its beginning until its commit is answered.

RF 3, min ISR 2, 3 partitions whose leaders are three brokers, and 3 of ``__transaction_state``. A transaction has a
batch for each partition, of so many records that there are at least ten. Transactions come one after the other, with a
pause in which the markers of the one before are written.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from benchmarks.cluster import BROKER_IDS, PARTITIONS, REPLICAS, TOPIC, BenchmarkCluster, BenchmarkError, are_isrs_full
from benchmarks.figure import Figure
from benchmarks.load import RECORD_SIZE
from laststand.chaos.process.client_link import ClientLink
from laststand.emulator.client.config import ClientConfig, ConsumerConfig, TransactionPaceConfig, TransactionsConfig
from laststand.emulator.client.history import HISTORY_FILE, read_history
from laststand.emulator.cluster.layout import token_file
from laststand.emulator.core.client.settings import ConsumerSettings, ProducerSettings
from laststand.emulator.core.history import OperationType, TransactionOperation
from laststand.emulator.core.switches import DEFAULT_ERA, era_switches
from laststand.emulator.core.topic_names import TRANSACTIONS_TOPIC
from laststand.emulator.core.types import CauseId
from laststand.emulator.rpc.run_token import RunToken

WARM_UP: Final = 20
"""Transactions before those that count."""

WINDOW: Final = 50
WINDOWS: Final = 5
RATE: Final = 10
"""Transactions per second."""

_RECORDS: Final = 4  # of a batch: the least with which three batches have ten records
_SESSION_TIMEOUT_MS: Final = 9_000
_DEADLINE_S: Final = 120.0


def measure() -> Iterator[Figure]:
    """Yields the figures: medians and 99th percentiles of windows of transactions.

    Raises:
        BenchmarkError: a node died, or a transaction was not committed.
    """
    for version in (1, 2):
        with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
            asyncio.run(_transact(Path(directory), version))
            yield from _figures(version, Path(directory) / HISTORY_FILE)


async def _transact(directory: Path, version: int) -> None:
    async with BenchmarkCluster(
        directory,
        session_timeout_ms=_SESSION_TIMEOUT_MS,
        properties=(),
        switches=replace(era_switches(DEFAULT_ERA), epoch_per_transaction=version == 2),
    ) as cluster:
        await cluster.start()
        await cluster.create_topic(TRANSACTIONS_TOPIC, REPLICAS)
        await cluster.wait_until(are_isrs_full, what="full ISRs")
        changed = asyncio.Event()
        link = ClientLink(on_counts=changed.set)
        token = token_file(directory)
        config = ClientConfig(
            history_path=str(directory / HISTORY_FILE),
            control_port=await link.listen(RunToken.read_or_draw(token)),
            token_file=str(token),
            brokers=BROKER_IDS,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            producers=(),
            consumers=(),
            transactions=_workload(version),
        )
        child = await link.launch(cluster.processes.supervisor, config, directory=directory)
        try:
            link.start_work(cluster.processes.direct_addresses())
            wanted = (WARM_UP + WINDOW * WINDOWS) * _RECORDS * len(PARTITIONS)
            async with asyncio.timeout(_DEADLINE_S):
                while sum(count.records for count in link.counts.acked) < wanted:
                    changed.clear()
                    await changed.wait()
            await link.stop_work(timeout_ms=15_000)
            cluster.check()
        except TimeoutError:
            raise BenchmarkError(f"too few transactions within {_DEADLINE_S} s") from None
        finally:
            await child.kill()
            await link.close()


def _workload(version: int) -> TransactionsConfig:
    return TransactionsConfig(
        name="payments",
        topics=(TOPIC,),
        version=version,
        record_size=RECORD_SIZE,
        settings=ProducerSettings(),
        reader=ConsumerConfig(name="reader", partitions=PARTITIONS, settings=ConsumerSettings()),
        pace=TransactionPaceConfig(
            partitions=PARTITIONS, width=len(PARTITIONS), records=_RECORDS, abort_every=0, rate=RATE
        ),
    )


def _figures(version: int, history: Path) -> Iterator[Figure]:
    begun: dict[CauseId, int] = {}
    durations: list[float] = []
    for operation in read_history(history):
        if not isinstance(operation, TransactionOperation):
            continue
        if operation.type is OperationType.INVOKE:
            begun[operation.operation_id] = operation.time_ns
        elif operation.type is OperationType.OK:
            durations.append((operation.time_ns - begun.pop(operation.operation_id)) / 1e6)
        else:
            raise BenchmarkError(f"a transaction was not committed: {operation}")
    counted = durations[WARM_UP : WARM_UP + WINDOW * WINDOWS]
    windows = [sorted(counted[start : start + WINDOW]) for start in range(0, len(counted), WINDOW)]
    for name, place in (("p50", WINDOW // 2), ("p99", WINDOW * 99 // 100)):
        values = tuple(window[place] for window in windows)
        yield Figure(name=f"transaction_version_{version}_{name}", unit="ms", values=values)

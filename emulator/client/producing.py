"""One producer of the client process: makes records at its rate and sends them."""

import asyncio

from laststand.emulator.client.config import ProducerConfig
from laststand.emulator.client.counters import Counters
from laststand.emulator.client.history import History
from laststand.emulator.client.pace import Pace
from laststand.emulator.client.records import encode_batch
from laststand.emulator.client.sending import Sending
from laststand.emulator.client.shell import Links
from laststand.emulator.core.types import BrokerId, TopicPartition


class RunningProducer:
    """A producer at work."""

    def __init__(
        self,
        *,
        config: ProducerConfig,
        brokers: tuple[BrokerId, ...],
        links: Links,
        history: History,
        counters: Counters,
    ) -> None:
        self.name = config.name
        self._config = config
        self._sending = Sending(
            name=config.name,
            settings=config.settings,
            brokers=brokers,
            topics=tuple(sorted({partition.topic for partition in config.partitions})),
            awaited=frozenset(config.awaited),
            links=links,
            history=history,
            encode=lambda content: encode_batch(config.name, content, record_size=config.record_size),
            on_recorded=lambda recorded: counters.add_send(recorded, config.settings.acks),
        )

        self._pace: Pace

    def start(self) -> None:
        """Begins to produce; everything else happens in callbacks."""
        self._sending.start()
        now_s = asyncio.get_running_loop().time()
        self._pace = Pace(self._config, now_s=now_s, producer=self._sending.producer)

    def send(self, partition: TopicPartition, record_count: int) -> None:
        """Sends a batch now."""
        self._sending.offer(self._pace.make(partition, record_count))

    async def produce(self) -> None:
        """Makes records at its rate until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            for offered in self._pace.tick(loop.time()):
                self._sending.offer(offered)
            await asyncio.sleep(self._config.tick_ms / 1000)

    async def finish(self, *, timeout_ms: int) -> int:
        """Waits for the outcomes of the sent records; returns the number of records that were given up without one."""
        return await self._sending.finish(timeout_ms=timeout_ms)

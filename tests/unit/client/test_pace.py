"""Transactions that a producer makes by itself."""

from types import SimpleNamespace

from laststand.emulator.client.config import TransactionPaceConfig
from laststand.emulator.client.pace import TransactionMaker, TransactionPace
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client.steps import TransactionOffered
from laststand.emulator.core.types import TopicPartition

ORDERS = tuple(TopicPartition("orders", number) for number in range(3))


class World:
    """A pace, and a producer that is idle unless the test says otherwise."""

    def __init__(self, *, abort_every: int = 0) -> None:
        self.producer = SimpleNamespace(unfinished=0)
        config = TransactionPaceConfig(partitions=ORDERS, width=2, records=4, abort_every=abort_every, rate=10)
        self.pace = TransactionPace(config, maker=TransactionMaker("app"), producer=self.producer)  # type: ignore[arg-type]

    def transactions(self, count: int) -> list[TransactionOffered]:
        made = [self.pace.tick(number * 0.1) for number in range(1, count + 1)]
        return [each for each in made if each is not None]


def test_partitions_take_turns() -> None:
    made = World().transactions(3)
    assert [each.partitions for each in made] == [
        (ORDERS[0], ORDERS[1]),
        (ORDERS[2], ORDERS[0]),
        (ORDERS[1], ORDERS[2]),
    ]
    assert {each.records for each in made} == {4}


def test_one_in_so_many_is_aborted() -> None:
    commit, abort = TransactionResult.COMMIT, TransactionResult.ABORT
    assert [each.result for each in World(abort_every=2).transactions(4)] == [commit, abort, commit, abort]
    assert {each.result for each in World().transactions(4)} == {commit}


def test_one_is_made_after_the_other_and_at_its_rate() -> None:
    world = World()
    assert world.pace.tick(1.0) is not None
    assert world.pace.tick(1.05) is None
    world.producer.unfinished = 1
    assert world.pace.tick(5.0) is None
    world.producer.unfinished = 0
    assert world.pace.tick(5.02) is not None
    assert world.pace.tick(5.04) is None

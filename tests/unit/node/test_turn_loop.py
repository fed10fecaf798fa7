"""Inputs become turns in order, each once; what must come first comes first."""

import asyncio

from laststand.emulator.core.node_clock import NodeClock
from laststand.emulator.node.turn_loop import TURN_INPUTS_MAX, TurnLoop


class Turns:
    """A loop over numbers, and the turns that it made."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []
        self.loop: TurnLoop[int] = TurnLoop(
            run_turn=self.seen.append, next_deadline_ms=lambda: None, timer_input=lambda: -1, clock=NodeClock()
        )

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_what_came_before_the_start_follows_the_first_input() -> None:
    turns = Turns()
    turns.loop.enqueue(2)
    await turns.settle()
    assert turns.seen == []
    turns.loop.start(1)
    await turns.settle()
    assert turns.seen == [[1, 2]]


async def test_inputs_put_in_first_come_before_waiting_ones() -> None:
    turns = Turns()
    turns.loop.start(0)
    await turns.settle()
    turns.loop.enqueue(1)
    turns.loop.enqueue_first(2)
    await turns.settle()
    assert turns.seen == [[0], [2, 1]]


async def test_a_turn_has_a_limit_and_the_rest_follows() -> None:
    turns = Turns()
    for number in range(1, TURN_INPUTS_MAX + 2):
        turns.loop.enqueue(number)
    turns.loop.start(0)
    await turns.settle()
    assert [len(turn) for turn in turns.seen] == [TURN_INPUTS_MAX, 2]
    assert [number for turn in turns.seen for number in turn] == list(range(TURN_INPUTS_MAX + 2))


async def test_after_the_stop_nothing_runs() -> None:
    turns = Turns()
    turns.loop.start(0)
    await turns.settle()
    turns.loop.enqueue(1)
    turns.loop.stop()
    turns.loop.enqueue(2)
    await turns.settle()
    assert turns.seen == [[0]]

"""The oracle's bound of a high watermark, by what a leader knew."""

import msgspec
import pytest

from laststand.emulator.core import events
from laststand.emulator.verification.rules.high_watermark import Terms, high_watermark_bounds
from laststand.emulator.verification.tables.event_lines import LINES
from laststand.emulator.verification.tables.events import EventRows


def bound(*, maximal_isr: tuple[int, ...], ends: dict[int, int | None], log_end_offset: int = 100) -> int:
    """The bound of leader 0."""
    rows = EventRows(events.HighWatermarkAdvanced)
    rows.append(
        msgspec.convert(
            {
                "type": "HighWatermarkAdvanced",
                "node": 0,
                "incarnation": 0,
                "sequence": 0,
                "cause_id": "test",
                "topic": "orders",
                "partition": 0,
                "topic_id": "id",
                "old": 0,
                "new": 100,
                "leader_epoch": 0,
                "log_end_offset": log_end_offset,
                "committed_isr": maximal_isr,
                "maximal_isr": maximal_isr,
                "joiners": (),
                "effective_min_isr": 2,
                "replicas": [
                    {"broker_id": node, "log_end_offset": end, "leader_epoch": 0} for node, end in ends.items()
                ],
            },
            LINES.type,
        )
    )
    no_terms = Terms((), ends_with_jumps={})
    [found] = high_watermark_bounds(rows, no_terms.starts_of(rows)).tolist()
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize(
    ("maximal_isr", "ends", "expected"),
    [
        ((0, 1, 2), {1: 90, 2: 80}, 80),
        ((0, 1), {1: 90, 2: 10}, 90),  # no member, no say
        ((0,), {1: 5}, 100),  # alone: its own log end
        ((0, 1), {1: 120}, 100),  # never past its own
        ((0, 1, 2), {1: 90}, 100),  # nothing was reported of a member
        ((0, 1, 2), {1: 90, 2: None}, 100),  # nothing is known of a member
    ],
)
def test_the_least_log_end_of_the_maximal_isr_bounds_it(
    maximal_isr: tuple[int, ...], ends: dict[int, int | None], expected: int
) -> None:
    assert bound(maximal_isr=maximal_isr, ends=ends) == expected

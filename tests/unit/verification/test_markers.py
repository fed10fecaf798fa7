"""The reasons for which a transaction has no end, by what coordinators and leaders recorded of it."""

import pytest

from laststand.emulator.verification.facts.transactions import Markers

PRODUCER = (7, 3)


def markers(*, decided: int = 0, sent: int = 0, appended: int = 0, kept: int = 0, epoch: int = 3) -> Markers:
    """Returns how far ends of the producer have come in ``orders-0``, and one of another producer."""
    found = Markers()
    found.decided.update({(7, epoch): decided, (8, 0): 1})
    for counts, count in ((found.sent, sent), (found.appended, appended), (found.kept, kept)):
        counts.update({("orders-0", (7, epoch)): count, ("orders-0", (8, 0)): 1, ("refunds-0", (7, epoch)): 1})
    return found


@pytest.mark.parametrize("epoch", [3, 4])
@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ({}, "no coordinator began"),
        ({"decided": 1}, "lost the decision"),
        ({"decided": 1, "sent": 1}, "gave up"),
        ({"decided": 1, "sent": 1, "appended": 1}, "is lost"),
        ({"decided": 1, "sent": 1, "appended": 1, "kept": 1}, "before it"),
        ({"decided": 2, "sent": 1, "appended": 1, "kept": 1}, "lost the decision"),
    ],
)
def test_the_reason_is_where_its_end_got_stuck(counts: dict[str, int], reason: str, epoch: int) -> None:
    assert reason in (markers(epoch=epoch, **counts).missing_end("orders-0", PRODUCER) or "")


def test_nothing_is_said_where_no_coordinator_recorded_anything() -> None:
    assert Markers().missing_end("orders-0", PRODUCER) is None

"""Times of produce requests: each answer counts once, in every bucket that is wide enough."""

from collections.abc import Sequence

from laststand.emulator.core import messages
from laststand.emulator.core.types import CauseId
from laststand.emulator.node.produce_times import ProduceTimes
from laststand.emulator.rpc.data_codec import Attachment

CAUSE = CauseId("test")


class Way:
    def __init__(self) -> None:
        self.taken: list[str] = []

    def answer(self, response: messages.Response, *, cause_id: CauseId, attachments: Sequence[Attachment]) -> None:
        self.taken.append("answered")

    requester: None = None

    def disconnect(self) -> None:
        self.taken.append("disconnected")


def samples(times: ProduceTimes) -> dict[str, float]:
    return {
        each.name.rpartition("_")[2] + each.labels.get("le", ""): each.value
        for each in times.collect().samples
        if each.labels["request"] == "Produce"
    }


def test_a_request_counts_when_it_is_answered() -> None:
    times, way = ProduceTimes(), Way()
    timed = times.timed(way)
    assert samples(times)["count"] == 0
    timed.answer(messages.ProduceResponse(partitions=()), cause_id=CAUSE, attachments=())
    assert way.taken == ["answered"]
    assert samples(times)["count"] == 1


def test_one_whose_connection_is_closed_instead_does_not_count() -> None:
    times, way = ProduceTimes(), Way()
    times.timed(way).disconnect()
    assert way.taken == ["disconnected"]
    assert samples(times)["count"] == 0


def test_buckets_hold_what_took_no_longer() -> None:
    times = ProduceTimes()
    for duration_ms in (0.5, 1.0, 7.0, 40_000.0):
        times.add(duration_ms)
    found = samples(times)
    assert [found[f"bucket{bound}"] for bound in ("1", "5", "10", "30000", "+Inf")] == [2, 2, 3, 3, 4]
    assert (found["count"], found["sum"]) == (4, 40_008.5)

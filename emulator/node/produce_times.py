"""Measures produce requests, from their arrival at the broker's event loop to their answer.

With acks=all most of it is the followers' time (Kafka's ``RemoteTimeMs``). A request with acks=0 does not count, as it
gets no response, nor does a request whose connection is closed instead.
"""

import time
from collections.abc import Sequence
from typing import Final

from prometheus_client.metrics_core import HistogramMetricFamily, Metric

from laststand.emulator.core import messages
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import CauseId
from laststand.emulator.rpc.data_codec import Attachment
from laststand.emulator.rpc.inbound import Responder

_BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000)
_MS_PER_S: Final = 1000


class ProduceTimes:
    """A histogram in milliseconds, named after Kafka's ``TotalTimeMs,request=Produce``."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS_MS) + 1)
        self._sum_ms = 0.0

    def timed(self, responder: Responder) -> Responder:
        """Returns a way back to the sender that stops the clock when it is taken; the clock starts now."""
        return _TimedResponder(responder, self)

    def add(self, duration_ms: float) -> None:
        """Counts one request."""
        place = next((index for index, bound in enumerate(_BOUNDS_MS) if duration_ms <= bound), len(_BOUNDS_MS))
        self._counts[place] += 1
        self._sum_ms += duration_ms

    def collect(self) -> Metric:
        """Returns the histogram as it is now."""
        buckets, total = [], 0
        for bound, count in zip((*map(str, _BOUNDS_MS), "+Inf"), self._counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        family = HistogramMetricFamily(
            "kafka_network_requestmetrics_totaltimems", "time of requests in milliseconds", labels=("request",)
        )
        family.add_metric(("Produce",), buckets, self._sum_ms)
        return family


class _TimedResponder:
    def __init__(self, responder: Responder, times: ProduceTimes) -> None:
        self._responder = responder
        self._times = times
        self._began_s = time.monotonic()

    @property
    def requester(self) -> Requester | None:
        return self._responder.requester

    def answer(self, response: messages.Response, *, cause_id: CauseId, attachments: Sequence[Attachment]) -> None:
        self._times.add((time.monotonic() - self._began_s) * _MS_PER_S)
        self._responder.answer(response, cause_id=cause_id, attachments=attachments)

    def disconnect(self) -> None:
        self._responder.disconnect()

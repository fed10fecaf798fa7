"""The cost of TLS, and of an authorizer without entries: CPU of brokers and producer for each MB that is acknowledged.

The load is that of ``produce`` at 100 KB, on a cluster of its own for each variant: plain, with TLS between all
processes, and with ``StandardAuthorizer``. Variants take turns, so that each ratio is of two measurements that follow
each other; time would measure whatever else the machine does.
"""

import asyncio
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from benchmarks.figure import Figure
from benchmarks.load import records_that_fit
from benchmarks.produce import BATCH_SIZES, figures, produce
from laststand.emulator.core.properties import STANDARD_AUTHORIZER

REPETITIONS: Final = 9
_SIZE: Final = "100k"
_PLAIN: Final = "plain"
_VARIANTS: Final[Mapping[str, Mapping[str, str]]] = {
    _PLAIN: {},
    "tls": {"security.inter.broker.protocol": "SSL"},
    "authorizer": {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"},
}


def measure() -> Iterator[Figure]:
    """Yields the figures.

    Raises:
        BenchmarkError: a node died, or nothing was acknowledged.
    """
    costs: dict[str, list[float]] = {name: [] for name in _VARIANTS}
    for _ in range(REPETITIONS):
        for name, properties in _VARIANTS.items():
            costs[name].append(_cpu_per_mb(tuple(properties.items())))
    for name, values in costs.items():
        yield Figure(name=f"identity_{name}_cpu", unit="us/MB", values=tuple(values))
    for name, values in costs.items():
        if name != _PLAIN:
            ratios = tuple(each / plain for each, plain in zip(values, costs[_PLAIN], strict=True))
            yield Figure(name=f"identity_{name}_over_plain", unit="x", values=ratios)


def _cpu_per_mb(properties: tuple[tuple[str, str], ...]) -> float:
    """Returns the CPU of brokers and producer together, in microseconds: the median of the windows."""
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
        samples, completions = asyncio.run(
            produce(Path(directory), records_that_fit(BATCH_SIZES[_SIZE]), properties=properties)
        )
    found = {figure.name: figure.values for figure in figures(_SIZE, samples, completions)}
    both = zip(found[f"{_SIZE}_broker_cpu"], found[f"{_SIZE}_producer_cpu"], strict=True)
    return statistics.median(map(sum, both))

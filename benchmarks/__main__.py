"""``python -m benchmarks [NAME]``: prints one line per figure as soon as it is known."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from benchmarks import (
    boot,
    console,
    controllers,
    event_writing,
    failover,
    group,
    identity,
    kafka,
    listener,
    loading,
    long_run,
    oracle,
    pages,
    partitions,
    playground,
    produce,
    simulator,
    suites,
    tap,
    transactions,
)
from benchmarks.cluster import BenchmarkError
from benchmarks.figure import Figure

BENCHMARKS: Final[Mapping[str, Callable[[], Iterator[Figure]]]] = {
    "boot": boot.measure,
    "produce": produce.measure,
    "console": console.measure,
    "failover": failover.measure,
    "controllers": controllers.measure,
    "oracle": oracle.measure,
    "events": event_writing.measure,
    "simulator": simulator.measure,
    "pages": pages.measure,
    "playground": playground.measure,
    "suites": suites.measure,
    "kafka": kafka.measure,
    "listener": listener.measure,
    "identity": identity.measure,
    "partitions": partitions.measure,
    "tap": tap.measure,
    "transactions": transactions.measure,
    "group": group.measure,
    "loading": loading.measure,
}
"""Benchmarks that can be asked for by name, in the order in which all of them run."""

_ONLY_BY_NAME: Final[Mapping[str, Callable[[], Iterator[Figure]]]] = {
    "long-run": long_run.measure,
    "oracle-partitions": oracle.measure_partitions,
    "oracle-cluster": oracle.measure_cluster,
}
"""Those that take an hour, or ask for one question more."""


def main() -> None:
    """Runs the benchmarks that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = {**BENCHMARKS, **_ONLY_BY_NAME}
    parser.add_argument("name", nargs="?", choices=list(known), help="one of them; without it, all that take no hour")
    chosen = parser.parse_args().name
    for name in BENCHMARKS if chosen is None else (chosen,):
        try:
            for figure in known[name]():
                print(figure.line(), flush=True)
        except BenchmarkError as error:
            sys.exit(f"{name}: {error}")


if __name__ == "__main__":
    main()

"""Plays the wire cases of a folder against a cluster of three brokers: ``make wire-conformance VECTORS=DIR``.

Prints what fails, and closes with ``N passed, N failed, N skipped``. The exit code is 1 if something failed.
"""

import asyncio
import json
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core.eras import era_rules
from laststand.emulator.core.properties import STANDARD_AUTHORIZER
from laststand.emulator.core.requester import ANONYMOUS
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.plan.nodes import KAFKA
from tests.wire.player import CasePlayer, ClosedError, Cluster, MismatchError, known_apis, warm_up

VECTORS: Final = Path(__file__).parent / "vectors"
_NOT_BUILT: Final = tomllib.loads(Path(__file__).with_name("not_built.toml").read_text(encoding="utf-8"))
_BROKERS: Final = (1, 2, 3)
_PROPERTIES: Final = (
    ("broker.rack", "r{node}"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector"),
    ("authorizer.class.name", STANDARD_AUTHORIZER),
    ("super.users", ";".join((ANONYMOUS, *(f"User:broker-{node}" for node in _BROKERS)))),
)
_CONTROLLER: Final = NodeId(0)
_START_S: Final = 30.0


def cases_of(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the cases of all files of a folder that hold wire cases; those of other vectors are passed over."""
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        cases = document.get("cases", ()) if isinstance(document, dict) else ()
        yield from (case for case in cases if "steps" in case)


def skip_reason(case: dict[str, Any]) -> str | None:
    """Returns why a case is not played; ``None`` if it is."""
    for need in case.get("needs", ()):
        if need in _NOT_BUILT["needs"]:
            return str(_NOT_BUILT["needs"][need])
    return None if known_apis(case) else "a message that is not built"


def known_difference(case: dict[str, Any]) -> str | None:
    """Returns why a case does not pass; ``None`` if it shall."""
    reason: str | None = _NOT_BUILT["cases"].get(case["id"])
    return reason


@asynccontextmanager
async def wire_cluster(directory: Path):  # type: ignore[no-untyped-def]
    """Runs three brokers in three racks; yields the address of the first one's listener."""
    ended = asyncio.get_running_loop().create_future()
    layout = ClusterLayout(
        run="wire",
        directory=directory,
        controller_ids=(_CONTROLLER,),
        broker_ids=tuple(BrokerId(NodeId(node)) for node in _BROKERS),
        switches=era_rules("kip-966"),
        properties=_PROPERTIES,
        toxiproxy=None,
        kafka_clients=(KAFKA,),
    )
    cluster = ProcessCluster(
        layout,
        on_start=lambda _node, _incarnation, _rules: None,
        on_unexpected_end=lambda name, end: ended.set_result((name, end)),
    )
    async with cluster:
        await cluster.start()
        host, _, port = cluster.kafka_addresses()[KAFKA][BrokerId(NodeId(1))].rpartition(":")
        await _serving((host, int(port)))
        await asyncio.to_thread(warm_up, Cluster((host, int(port))))
        yield host, int(port)


async def _serving(address: tuple[str, int]) -> None:
    """Waits until all brokers are unfenced."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _START_S
    while True:
        try:
            if len((await asyncio.to_thread(Cluster, address)).addresses) == len(_BROKERS):
                return
        except (ClosedError, OSError):
            pass
        if loop.time() > deadline:
            raise TimeoutError("the brokers are not unfenced")
        await asyncio.sleep(0.05)  # between two looks at the cluster


def failure_of(cluster: Cluster, case: dict[str, Any], *, run: str = "") -> str | None:
    """Plays a case; returns what is wrong, or ``None``."""
    try:
        CasePlayer(cluster, case, run=run).play()
    except (MismatchError, ClosedError, OSError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return None


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wire-") as name:
        yield Path(name)


async def _play(folder: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    with _directory() as directory:
        async with wire_cluster(directory) as address:
            cluster = await asyncio.to_thread(Cluster, address)
            for case in cases_of(folder):
                if skip_reason(case) is not None:
                    counts["skipped"] += 1
                    continue
                failure = await asyncio.to_thread(failure_of, cluster, case)
                counts["passed" if failure is None else "failed"] += 1
                if failure is not None:
                    sys.stdout.write(f"{case['id']}: {failure[:400]}\n")
                    sys.stdout.flush()
    return counts


def main(arguments: list[str]) -> int:
    """Plays all cases; returns the exit code."""
    folder = Path(arguments[0]) if arguments else VECTORS
    if next(cases_of(folder), None) is None:
        sys.stderr.write(f"{folder}: expected a folder with files of wire cases\n")
        return 254
    counts = asyncio.run(_play(folder))
    sys.stdout.write(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped\n")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

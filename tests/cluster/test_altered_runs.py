"""A run on real processes is played once, and its files are altered, each in a way of its own, seals left as they are.

What a verdict rests on is vouched for at the end of the run, so that none of it can be altered without a doubt; what it
does not rest on is listed, too.
"""

import asyncio
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from laststand.emulator.core.packed.layout import CELL
from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport
from tests.cluster.test_run import Played, play

pytestmark = pytest.mark.cluster

HEAD: Final = """\
name: test/altered
cluster:
  brokers: 3
  properties: {broker.session.timeout.ms: 2000, broker.heartbeat.interval.ms: 250, replica.lag.time.max.ms: 1500}
topics: [{name: orders, replicas: [[0, 1, 2], [1, 2, 0]], min.insync.replicas: 2}]
workload: {producers: [{acks: all, rate: 200}], consumers: [{}]}
end: as_is
"""
STEPS: Final = """\
  - until: {acked: 50, acks: all}
  - kill: {node: 2}
  - start: {node: 2}
  - until: {partition: orders-0, isr: [0, 1, 2]}
  - kill: {node: 2}
  - until: {partition: orders-0, isr: [0, 1]}
  - until: {acked: 30, acks: all}
"""
"""Broker 2 is killed twice, and its replicas end behind the others."""

LOG: Final = f"{0:020}.log"
ORDERS: Final = f"data/orders-0/{LOG}"
METADATA: Final = f"nodes/100/data/__cluster_metadata-0/{LOG}"

Alter = Callable[[Path, Path], None]
"""Alters a run's directory; the second one is of another run."""


def written(name: str, change: Callable[[bytes], bytes]) -> Alter:
    def alter(run: Path, _: Path) -> None:
        path = run / name
        before = path.read_bytes()
        path.write_bytes(change(before))
        assert path.read_bytes() != before

    return alter


def added(name: str) -> Alter:
    def alter(run: Path, _: Path) -> None:
        (run / name).write_text("anything")

    return alter


def removed(name: str) -> Alter:
    def alter(run: Path, _: Path) -> None:
        path = run / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    return alter


def renamed(name: str, new: str) -> Alter:
    def alter(run: Path, _: Path) -> None:
        (run / name).rename(run / new)

    return alter


def copied(name: str, new: str) -> Alter:
    def alter(run: Path, _: Path) -> None:
        _put(run / name, run / new)

    return alter


def taken_over(name: str) -> Alter:
    """It is that of another run of the same scenario."""

    def alter(run: Path, other: Path) -> None:
        _put(other / name, run / name)

    return alter


def _put(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    else:
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, target)


def swapped(one: str, other: str) -> Alter:
    def alter(run: Path, _: Path) -> None:
        (run / one).rename(run / "aside")
        (run / other).rename(run / one)
        (run / "aside").rename(run / other)

    return alter


def several(*each: Alter) -> Alter:
    def alter(run: Path, other: Path) -> None:
        for one in each:
            one(run, other)

    return alter


def replaced(name: str, old: str, new: str) -> Alter:
    return written(name, lambda content: content.replace(old.encode(), new.encode()))


def flipped(name: str, position: int) -> Alter:
    def change(content: bytes) -> bytes:
        at = position % len(content)
        return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]

    return written(name, change)


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def without_last_batch(content: bytes) -> bytes:
    return content[: _batch_starts(content)[-1]]


def with_last_batch_again(content: bytes) -> bytes:
    return content + content[_batch_starts(content)[-1] :]


def _batch_starts(content: bytes) -> list[int]:
    starts = [0]
    while (end := starts[-1] + 12 + int.from_bytes(content[starts[-1] + 8 : starts[-1] + 12], "big")) < len(content):
        starts.append(end)
    return starts


def without_line(text: str) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        return b"".join(line for line in content.splitlines(keepends=True) if text.encode() not in line)

    return change


def on_all(name: str, alter: Callable[[str], Alter]) -> Alter:
    return several(*(alter(f"nodes/{node}/{name}") for node in (0, 1, 2)))


ALTERED: Final[Mapping[str, Alter]] = {
    # What nodes stored.
    "directories of two nodes swapped": swapped("nodes/0", "nodes/1"),
    "log directories of two nodes swapped": swapped("nodes/0/data", "nodes/2/data"),
    "replicas of two nodes swapped": swapped("nodes/0/data/orders-0", "nodes/2/data/orders-0"),
    "replicas of two partitions swapped": swapped("nodes/0/data/orders-0", "nodes/0/data/orders-1"),
    "a replica copied over the others": several(
        copied(f"nodes/0/{ORDERS}", f"nodes/1/{ORDERS}"), copied(f"nodes/0/{ORDERS}", f"nodes/2/{ORDERS}")
    ),
    "the log directory of one node copied to another": copied("nodes/0/data", "nodes/1/data"),
    "a log directory of one node of another run": taken_over("nodes/1/data"),
    "all that nodes stored of another run": taken_over("nodes"),
    "a replica of another run": taken_over(f"nodes/2/{ORDERS}"),
    "every replica of another run": on_all(ORDERS, taken_over),
    "a log without its last batch": written(f"nodes/1/{ORDERS}", without_last_batch),
    "every log without its last batch": on_all(ORDERS, lambda name: written(name, without_last_batch)),
    "a torn log": written(f"nodes/1/{ORDERS}", lambda content: content[:-7]),
    "an empty log": written(f"nodes/2/{ORDERS}", lambda _: b""),
    "half of every log": on_all(ORDERS, lambda name: written(name, half)),
    "a batch twice": written(f"nodes/1/{ORDERS}", with_last_batch_again),
    "something behind a log": written(f"nodes/0/{ORDERS}", lambda content: content + b"x"),
    "zeros behind a log": written(f"nodes/0/{ORDERS}", lambda content: content + bytes(100)),
    "a log removed": removed(f"nodes/0/{ORDERS}"),
    "a replica removed": removed("nodes/0/data/orders-0"),
    "a log directory removed": removed("nodes/0/data"),
    "a node removed": removed("nodes/2"),
    "all nodes removed": removed("nodes"),
    "a bit of an offset": flipped(f"nodes/1/{ORDERS}", 7),
    "a bit of a leader epoch": flipped(f"nodes/1/{ORDERS}", 15),
    "a bit of a record": flipped(f"nodes/1/{ORDERS}", -3),
    "a bit of the same record everywhere": on_all(ORDERS, lambda name: flipped(name, 90)),
    "a segment renamed": renamed(f"nodes/0/{ORDERS}", f"nodes/0/data/orders-0/{7:020}.log"),
    "a segment twice": copied(f"nodes/0/{ORDERS}", f"nodes/0/data/orders-0/{9999:020}.log"),
    "a replica renamed": renamed("nodes/0/data/orders-0", "nodes/0/data/orders-7"),
    "a replica twice": copied("nodes/0/data/orders-0", "nodes/0/data/orders-2"),
    "a node twice": copied("nodes/0", "nodes/3"),
    "a log start": written("nodes/1/data/log-start-offset-checkpoint", lambda _: b"0\n1\norders 0 5\n"),
    "log starts removed": removed("nodes/1/data/log-start-offset-checkpoint"),
    "a mark of a clean shutdown added": copied(
        "nodes/1/data/.kafka_cleanshutdown", "nodes/2/data/.kafka_cleanshutdown"
    ),
    "a mark of a clean shutdown removed": removed("nodes/1/data/.kafka_cleanshutdown"),
    "a mark of a clean shutdown altered": written("nodes/1/data/.kafka_cleanshutdown", lambda content: content + b" "),
    "a topic id removed": removed("nodes/1/data/orders-0/partition.metadata"),
    "a topic id altered": replaced("nodes/1/data/orders-0/partition.metadata", "topic_id: ", "topic_id: A"),
    "a node id": replaced("nodes/1/data/meta.properties", "node.id=1", "node.id=2"),
    "a node id removed": removed("nodes/1/data/meta.properties"),
    "a bit of the controller's log": flipped(METADATA, 400),
    "a torn log of the controller": written(METADATA, half),
    "the controller's log of another run": taken_over(METADATA),
    "the controller's log removed": removed(METADATA),
    # What was to be played.
    "the era": replaced("cluster.yaml", "era: kip-966", "era: kafka-3.9"),
    "min.insync.replicas of all nodes": replaced(
        "cluster.yaml", "properties:\n", "properties:\n  min.insync.replicas: '1'\n"
    ),
    "a property": replaced("cluster.yaml", "'2000'", "'9000'"),
    "a rule": replaced("cluster.yaml", "elr: 'on'", "elr: 'off'"),
    "the driver": replaced("cluster.yaml", "driver: process", "driver: simulator"),
    "the seed": replaced("cluster.yaml", "seed: 1", "seed: 2"),
    "the description of another run": taken_over("cluster.yaml"),
    "the description removed": removed("cluster.yaml"),
    "which steps may be missed": written("scenario.yaml", lambda content: content + b"missed_step: end\n"),
    "the scenario's name": replaced("scenario.yaml", "name: test/altered", "name: test/another"),
    "the scenario removed": removed("scenario.yaml"),
    # What was written down.
    "a bit of a broker's events": flipped("events/0-0.packed", CELL * 40),
    "a bit of the controller's events": flipped("events/100-0.jsonl", 700),
    "a bit of the harness's events": flipped("events/harness-0.jsonl", 900),
    "a bit of the history": flipped("history.packed", CELL * 20),
    "half of a broker's events": written("events/1-0.packed", half),
    "half of the events of a broker that was killed": written("events/2-0.packed", half),
    "the first line of a killed broker's events cut": written("events/2-0.packed", lambda content: content[:20]),
    "half of the controller's events": written("events/100-0.jsonl", half),
    "half of the harness's events": written("events/harness-0.jsonl", half),
    "half of the history": written("history.packed", half),
    "a broker's events removed": removed("events/0-0.packed"),
    "the controller's events removed": removed("events/100-0.jsonl"),
    "the harness's events removed": removed("events/harness-0.jsonl"),
    "the history removed": removed("history.packed"),
    "the events of a broker that was killed removed": removed("events/2-0.packed"),
    "no event of the controller": written("events/100-0.jsonl", lambda _: b""),
    "an empty history": written("history.packed", lambda _: b""),
    "all events removed": removed("events"),
    "a broker's events of another run": taken_over("events/0-0.packed"),
    "the controller's events of another run": taken_over("events/100-0.jsonl"),
    "the harness's events of another run": taken_over("events/harness-0.jsonl"),
    "the history of another run": taken_over("history.packed"),
    "a broker's events under another name": renamed("events/0-0.packed", "events/0-3.packed"),
    "the events of two brokers swapped": swapped("events/0-0.packed", "events/1-0.packed"),
    "a broker's events twice": copied("events/0-0.packed", "events/0-1.packed"),
    "the history twice": copied("history.packed", "history/producer.packed"),
    "the controller's registrations removed": written("events/100-0.jsonl", without_line("BrokerRegistered")),
    "an end of a process removed": written("events/harness-0.jsonl", without_line('"end":"killed"')),
    "the end of the run removed": written("events/harness-0.jsonl", without_line("RunEnded")),
    "a vouched file no longer vouched for": written("events/harness-0.jsonl", without_line(f"nodes/1/{ORDERS}")),
}

HARMLESS: Final[Mapping[str, Alter]] = {
    "indexes removed": several(
        removed(f"nodes/0/data/orders-0/{0:020}.index"), removed(f"nodes/0/data/orders-0/{0:020}.timeindex")
    ),
    "epochs of a log, which only its broker's next start reads": removed(
        "nodes/0/data/orders-0/leader-epoch-checkpoint"
    ),
    "high watermarks, likewise": removed("nodes/0/data/replication-offset-checkpoint"),
    "recovery points, likewise": removed("nodes/0/data/recovery-point-offset-checkpoint"),
    "what a node was started with": removed("nodes/0/config-0.json"),
    "what was synced": removed("nodes/0/ledger"),
    "what a node printed": removed("nodes/0/node.log"),
    "what the harness printed": removed("run.log"),
    "what clients were started with": removed("client.json"),
    "the plan as it was played, which serves to replay it": removed("plan.yaml"),
    "a file of somebody else": added("notes.txt"),
    "a file of somebody else among the nodes": added("nodes/0/data/orders-0/notes.txt"),
}
"""No verdict rests on these."""


async def play_twice(store: Path) -> tuple[Played, Played]:
    return await play(store / "one", STEPS, head=HEAD), await play(store / "another", STEPS, head=HEAD)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    one, other = asyncio.run(play_twice(tmp_path_factory.mktemp("altered")))
    assert (one.problem, other.problem) == (None, None)
    return one.directory, other.directory


def verdict_on(run: Path) -> VerdictReport:
    return judge(plan_run(0, open_run_directory(run))).report


@pytest.fixture
def altered(runs: tuple[Path, Path], tmp_path: Path) -> Callable[[Alter], VerdictReport]:
    def report(alter: Alter) -> VerdictReport:
        run = Path(shutil.copytree(runs[0], tmp_path / "altered" / "1"))
        alter(run, runs[1])
        return verdict_on(run)

    return report


@pytest.mark.parametrize("name", ALTERED)
def test_what_a_verdict_rests_on_is_not_altered_without_a_doubt(
    name: str, altered: Callable[[Alter], VerdictReport]
) -> None:
    report = altered(ALTERED[name])
    assert report.doubts
    assert report.losses == ()
    assert report.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("name", HARMLESS)
def test_what_no_verdict_rests_on_may_be_altered(name: str, altered: Callable[[Alter], VerdictReport]) -> None:
    report = altered(HARMLESS[name])
    assert (report.unknown_reasons, report.verdict) == ((), Verdict.VALID)

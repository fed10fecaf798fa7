"""Runs as files for Jepsen and Perfetto: in their forms, with everything that the run has."""

import json
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from emulator.cli.main import cli
from emulator.core.errors import ConfigError
from emulator.core.events import AnyEvent, MetadataApplied, TopicCreated
from emulator.core.history import OperationType, PollOperation, SendOperation
from emulator.core.types import CauseId, MetadataOffset, TopicId
from emulator.report.export import TraceFormat, write_trace
from emulator.report.jepsen import jepsen_lines
from emulator.report.perfetto import trace_events
from emulator.report.run_files import ReportedRun
from emulator.report.shiviz import READ_BY, LoggedEvent, shiviz_lines
from tests.unit.report.judged_runs import left_by, lost
from tests.verification.run_builder import healthy

LINE = re.compile(
    r"\{:index (\d+), :time \d+, :type :(\w+), :process (\d+), :f :(\w+), :value (\[.*\])(, :error .*)?\}"
)


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> ReportedRun:
    return lost(tmp_path_factory.mktemp("lost") / "story" / "1")


def parsed(lines: list[str]) -> list[tuple[int, str, int, str, str]]:
    found = []
    for line in lines:
        match = LINE.fullmatch(line)
        assert match is not None, line
        found.append((int(match[1]), match[2], int(match[3]), match[4], match[5]))
    return found


def check_history(operations: list[tuple[int, str, int, str, str]]) -> None:
    """A process does one thing at a time, and nothing after an unknown outcome."""
    busy: dict[int, str] = {}
    gone: set[int] = set()
    assert [index for index, *_ in operations] == list(range(len(operations)))
    for _, kind, process, f, _ in operations:
        assert process not in gone
        if kind == "invoke":
            assert process not in busy
            busy[process] = f
        else:
            assert busy.pop(process) == f
            if kind == "info":
                gone.add(process)


def test_a_history_is_jepsens(loss: ReportedRun, tmp_path: Path) -> None:
    write_trace(loss.directory, tmp_path / "history.edn", TraceFormat.JEPSEN)
    operations = parsed((tmp_path / "history.edn").read_text().splitlines())
    check_history(operations)
    acked = [value for _, kind, _, f, value in operations if (kind, f) == ("ok", "send")]
    records = sum(len(re.findall(r'\[:send "orders-0" \[\d+ "producer-0/\d+"\]\]', value)) for value in acked)
    assert records == sum(counts.acked for counts in loss.verdict.counts)
    polled = [value for _, kind, _, f, value in operations if (kind, f) == ("ok", "poll")]
    assert any(re.search(r'\{"orders-0" \[\[0 "producer-0/\d+"\]', value) for value in polled)


def send(index: int, operation: str, kind: OperationType, base_offset: int | None = None) -> SendOperation:
    line = {
        "f": "send",
        "index": index,
        "time_ns": index,
        "type": kind.value,
        "process": "p",
        "operation_id": operation,
        "topic": 'a"b',
        "topic_id": None,
        "partition": 0,
        "acks": -1,
        "first_record_id": index,
        "record_count": 1,
        "base_offset": base_offset,
    }
    return msgspec.convert(line, SendOperation)


def test_sends_in_flight_are_processes_and_one_of_unknown_outcome_ends_its_own() -> None:
    lines = list(
        jepsen_lines(
            [
                send(0, "x", OperationType.INVOKE),
                send(1, "y", OperationType.INVOKE),
                send(2, "x", OperationType.INFO),
                send(3, "z", OperationType.INVOKE),
                send(4, "y", OperationType.OK, base_offset=7),
                send(5, "w", OperationType.INVOKE),
            ]
        )
    )
    operations = parsed(lines)
    check_history(operations)
    assert [process for _, _, process, _, _ in operations] == [0, 1, 0, 2, 1, 1]
    assert '"a\\"b-0"' in lines[0]


def test_a_trace_has_every_node_its_roles_and_its_cuts(loss: ReportedRun) -> None:
    events = list(trace_events(loss.story))
    kinds = Counter(event["ph"] for event in events)
    assert set(kinds) == {"M", "X", "i", "C"}
    assert all(event["dur"] > 0 for event in events if event["ph"] == "X")
    named = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert named == {"broker 0", "broker 1", "broker 2", "the controller"}
    assert kinds["i"] == len(loss.story.partitions[0].cuts)
    assert {"leader", "in ISR", "out", "cut off from every node", "no power"} <= {event["name"] for event in events}
    threads = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"} <= threads


def clocks(path: Path) -> list[tuple[str, dict[str, int], str]]:
    found = re.findall(READ_BY.replace("?<", "?P<"), path.read_text())
    return [(host, json.loads(clock), event) for host, clock, event in found]


def test_a_log_for_shiviz_has_clocks_that_grow(loss: ReportedRun, tmp_path: Path) -> None:
    write_trace(loss.directory, tmp_path / "run.log", TraceFormat.SHIVIZ)
    told = clocks(tmp_path / "run.log")
    assert len(told) == len((tmp_path / "run.log").read_text().splitlines()) / 2
    counts: Counter[str] = Counter()
    for host, clock, _ in told:
        counts[host] += 1
        assert clock[host] == counts[host]
        assert all(clock[other] <= counts[other] for other in clock)
    assert {"broker-0", "controller-100", "harness-1000"} <= set(counts)
    assert not any(event.startswith("BatchAppended") for _, _, event in told)


def metadata(node: int, time_ns: int, event: AnyEvent) -> LoggedEvent:
    return LoggedEvent(time_ns, node, 0, time_ns, event)


def test_an_image_that_is_acted_on_is_caused_by_its_records() -> None:
    created = TopicCreated(cause_id=CauseId("x"), metadata_offset=MetadataOffset(5), topic="t", topic_id=TopicId("id"))
    applied = [
        MetadataApplied(cause_id=CauseId(name), start_offset=MetadataOffset(begin), end_offset=MetadataOffset(end))
        for name, begin, end in (("a", 0, 5), ("b", 5, 6))
    ]
    lines = list(shiviz_lines([metadata(100, 1, created), metadata(0, 2, applied[0]), metadata(0, 3, applied[1])]))
    assert [json.loads(line.partition(" ")[2]) for line in lines[::2]] == [
        {"node-100": 1},
        {"node-0": 1},
        {"node-0": 2, "node-100": 1},
    ]


def test_export_writes_a_file_for_each_run(loss: ReportedRun, tmp_path: Path) -> None:
    calm = left_by(healthy(tmp_path / "calm" / "2"))
    for name in ("perfetto", "jepsen", "shiviz"):
        words = ["export", str(loss.directory), str(calm), str(tmp_path / name), "--to", name]
        cli.main(words, standalone_mode=False)
        assert len(list((tmp_path / name).iterdir())) == 2
    for file in (tmp_path / "perfetto").iterdir():
        assert json.loads(file.read_text())["traceEvents"]


def test_a_torn_history_is_named_by_its_line(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run" / "1").finish()
    lines = (run / "history.jsonl").read_text().splitlines()
    (run / "history.jsonl").write_text("\n".join([*lines[:2], lines[2][:20]]))
    with pytest.raises(ConfigError, match=r"history\.jsonl:3"):
        write_trace(run, tmp_path / "x.edn", TraceFormat.JEPSEN)
    with (run / "events/0-0.jsonl").open("a") as file:
        file.write("{}")
    with pytest.raises(ConfigError, match=r"events/0-0\.jsonl:\d+"):
        write_trace(run, tmp_path / "x.log", TraceFormat.SHIVIZ)
    assert msgspec.json.decode(lines[0], type=SendOperation | PollOperation).index == 0

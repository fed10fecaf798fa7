"""Runs as files for Jepsen and Perfetto: in their forms, with everything that the run has."""

import json
import re
from collections import Counter
from pathlib import Path

import edn_format
import msgspec
import pytest
from edn_format.exceptions import EDNDecodeError

from laststand.cli.main import cli
from laststand.emulator.core import events
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.history import OperationType, PollOperation, SendOperation
from laststand.emulator.core.types import CauseId, MetadataOffset, TopicId
from laststand.emulator.report.export import TraceFormat, write_trace
from laststand.emulator.report.jepsen import jepsen_lines
from laststand.emulator.report.perfetto import TraceEvent, trace_events
from laststand.emulator.report.run_files import ReportedRun
from laststand.emulator.report.shiviz import READ_BY, LoggedEvent, shiviz_lines
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


def check_edn(line: str) -> None:
    """Reads a line as Clojure does, and checks that it is an operation of Jepsen's Kafka workload."""
    operation = edn_format.loads(line)
    fields = {str(key.name): value for key, value in operation.items()}
    assert fields.keys() - {"error"} == {"index", "time", "type", "process", "f", "value"}
    assert fields["type"].name in ("invoke", "ok", "fail", "info")
    for micro in fields["value"]:
        kind, *rest = micro
        assert kind == fields["f"]
        match kind.name, rest:
            case "send", [str(), str()]:
                pass
            case "send", [str(), [int(), str()]]:
                assert fields["type"].name == "ok"
            case "poll", []:
                assert fields["type"].name == "invoke"
            case "poll", [polled]:
                assert all(isinstance(offset, int) for pairs in polled.values() for offset, _ in pairs)
            case _:
                raise AssertionError(line)


def test_a_reader_of_edn_reads_a_history(loss: ReportedRun, tmp_path: Path) -> None:
    write_trace(loss.directory, tmp_path / "history.edn", TraceFormat.JEPSEN)
    lines = (tmp_path / "history.edn").read_text().splitlines()
    assert len(lines) > 40
    for line in lines:
        check_edn(line)
    polled = next(line for line in lines if ":f :poll" in line and ":type :ok" in line)
    for spoiled in (polled.replace("[[:poll", "[[:peek"), polled.replace("{:index", "{:number"), polled[:-2]):
        with pytest.raises((AssertionError, EDNDecodeError)):
            check_edn(spoiled)


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


def problems_of_trace(events: list[TraceEvent]) -> list[str]:
    """Returns what breaks the Trace Event Format, by its document, or what Perfetto drops: slices that do not nest."""
    found, slices, begun = [], dict[tuple[int, int], list[tuple[int, int]]](), set[object]()
    for event in events:
        given = {"ph", "name", "pid"} - event.keys()
        given |= {"X": {"ts", "dur", "tid"}, "i": {"ts", "s", "tid"}, "C": {"ts", "args"}, "M": {"args"}}.get(
            event["ph"], {"ts", "cat", "id"}
        ) - event.keys()
        if given:
            found.append(f"{event} lacks {given}")
            continue
        match event["ph"]:
            case "X":
                slices.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
            case "b":
                begun.add((event["cat"], event["id"]))
            case "e" if (event["cat"], event["id"]) not in begun:
                found.append(f"{event} ends what was not begun")
            case "i" if event["s"] not in "gpt":
                found.append(f"{event} has no such scope")
            case "C" if not all(isinstance(value, int | float) for value in event["args"].values()):
                found.append(f"{event} counts what is no number")
            case "M" if event["name"] not in ("process_name", "thread_name"):
                found.append(f"{event} is no metadata")
    for thread, spans in slices.items():
        open_ends: list[int] = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            if open_ends and end > open_ends[-1]:
                found.append(f"thread {thread}: {begin}..{end} does not end within the slice that it began in")
            open_ends.append(end)
    return found


def test_a_trace_keeps_to_its_format(loss: ReportedRun) -> None:
    events = list(trace_events(loss.story))
    assert problems_of_trace(events) == []
    spoiled = [
        TraceEvent(ph="X", name="a", pid=1, tid=1, ts=0, dur=10),
        TraceEvent(ph="X", name="b", pid=1, tid=1, ts=5, dur=10),
        TraceEvent(ph="i", name="c", pid=1, tid=1, ts=0, s="x"),
        TraceEvent(ph="C", name="d", pid=1, ts=0, args={"offset": "ten"}),
        TraceEvent(ph="e", name="e", pid=1, tid=1, ts=0, cat="fault", id="1"),
        TraceEvent(ph="X", name="f", pid=1, tid=1, ts=0),
    ]
    assert len(problems_of_trace(spoiled)) == 5


def test_a_trace_has_every_node_its_roles_and_its_cuts(loss: ReportedRun) -> None:
    events = list(trace_events(loss.story))
    kinds = Counter(event["ph"] for event in events)
    assert set(kinds) == {"M", "X", "i", "C", "b", "e"}
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


def metadata(node: int, time_ns: int, event: events.AnyEvent) -> LoggedEvent:
    return LoggedEvent(time_ns, node, 0, time_ns, event)


def test_an_image_that_is_acted_on_is_caused_by_its_records() -> None:
    created = events.TopicCreated(
        cause_id=CauseId("x"), metadata_offset=MetadataOffset(5), topic="t", topic_id=TopicId("id")
    )
    applied = [
        events.MetadataApplied(
            cause_id=CauseId(name), start_offset=MetadataOffset(begin), end_offset=MetadataOffset(end)
        )
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

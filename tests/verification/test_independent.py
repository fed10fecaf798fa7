"""The independent oracle: each of its checks fires on a run written by hand, and it agrees with the other two."""

import ast
import json
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.verification.judge import judge as verify
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.verdict.report import Verdict as VerdictOfVerify
from tests.independent import compare
from tests.independent.checks import CHECKS
from tests.independent.judge import Verdict, judge
from tests.independent.kafka_log import crc32c, read_batches
from tests.independent.packed import read_packed
from tests.library import Library
from tests.unit.verification.test_tampering import TOLD_BY_ACCOUNTS, TOLD_BY_SEALS, honest
from tests.verification.packing import pack_run
from tests.verification.test_checks import FIRES, HOLDS

Line = dict[str, Any]
PACKAGE = Path(compare.__file__).parent
REGRESSIONS = Path(__file__).parents[1] / "simulation/regressions"
ERAS = ("kafka-0.10", "kafka-2.5-zk", "kip-966")
PLANS = (
    "s40-downgrade-ignores-elr-off",
    "a-deposed-leader-acknowledges",
    "s22-truncate-before-hw-off",
    "s38-answers-await-metadata-off",
    "a-leader-with-other-batches-at-the-same-offsets",
    "bytes-appended-again-after-their-deletion",
)
ORDERS: Line = {"topic": "orders", "partition": 0, "topic_id": "id"}


class Story:
    """A run as lines: three batches of one record, acknowledged by broker 0, read, and led by broker 1 in epoch 1."""

    def __init__(self) -> None:
        self.batches = [encode(number) for number in range(3)]
        self.crcs = [read_batches(batch)[0].crc for batch in self.batches]
        self.brokers = {node: [self._started("broker")] for node in (0, 1)}
        self.brokers[0] += [self.led(0, 0), *(self.append(number) for number in range(3)), self.advance(3)]
        self.brokers[1] += [*(self.append(number, "follower") for number in range(3)), self.led(1, 3)]
        self.controller = [self._started("controller"), self.state(0, 0), self.state(1, 1)]
        self.harness = [self._started("harness"), {"type": "RunEnded", "problem": None}]
        self.harness += [self.stopped(node) for node in (0, 1)]
        self.history = [self.send(number, begins) for number in range(3) for begins in (True, False)]
        self.history += [self.poll("consumer-0", "live"), self.poll("final-consumer", "final", node=1, epoch=1)]
        read = {"f": "final_read", "type": "ok", "process": "final-consumer", "error": None}
        self.history.append({**ORDERS, **read, "start_offset": 0, "end_offset": 3})
        self.logs = {node: list(self.batches) for node in (0, 1)}

    def judged(self, path: Path) -> Verdict:
        """Writes the run and has it judged."""
        (path / "events").mkdir(parents=True)
        files = {"0-0": self.brokers[0], "1-0": self.brokers[1], "100-0": self.controller, "harness-0": self.harness}
        for name, lines in files.items():
            node = 1000 if name == "harness-0" else int(name.partition("-")[0])
            numbered = [
                {"node": node, "incarnation": 0, "sequence": place, "time_ns": place, **line}
                for place, line in enumerate(lines)
            ]
            _write(path / f"events/{name}.jsonl", numbered)
        _write(path / "history.jsonl", [{"index": place, **line} for place, line in enumerate(self.history)])
        for node, batches in self.logs.items():
            directory = path / f"nodes/{node}/data/orders-0"
            directory.mkdir(parents=True)
            (directory / f"{0:020}.log").write_bytes(b"".join(batches))
            (directory / "partition.metadata").write_text("version: 0\ntopic_id: id\n")
        return judge(path)

    def append(self, number: int, role: str = "leader", **changes: object) -> Line:
        """A batch in a log; ``changes`` spoil it."""
        place = {"role": role, "base_offset": number, "last_offset": number, "leader_epoch": 0}
        producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number}
        return {**ORDERS, "type": "BatchAppended", "crc": self.crcs[number], **place, **producer, **changes}

    def advance(self, new: int) -> Line:
        """Broker 0's high watermark in epoch 0."""
        return {**ORDERS, "type": "HighWatermarkAdvanced", "old": 0, "new": new, "leader_epoch": 0}

    def led(self, epoch: int, start: int) -> Line:
        """A broker begins to lead."""
        place = {"leader_epoch": epoch, "epoch_start_offset": start, "high_watermark": start}
        return {**ORDERS, "type": "BecameLeader", **place}

    def stopped(self, node: int) -> Line:
        """A broker's process ends in order."""
        return {
            "type": "IncarnationEnded",
            "ended_node": node,
            "ended_incarnation": 0,
            "end": "stopped",
            "metadata_offset": 9,
        }

    def state(self, leader: int, epoch: int) -> Line:
        """A committed state of the partition."""
        why = {"metadata_offset": 5 + epoch, "reason": "broker_fenced", "election": "isr", "effective_min_isr": 2}
        members = {"leader": leader, "leader_epoch": epoch, "replicas": [0, 1], "isr": [0, 1]}
        return {**ORDERS, "type": "PartitionChanged", **why, **members}

    def send(self, number: int, begins: bool) -> Line:  # noqa: FBT001
        """The invocation of a send, or its completion."""
        names = {"f": "send", "process": "producer-0", "operation_id": f"producer-0:{number}", "acks": -1}
        attempt = {"node": 0, "leader_epoch": 0, "crc": self.crcs[number], "outcome": "NONE"}
        outcome: Line = {"type": "invoke", "base_offset": None, "attempts": []}
        if not begins:
            outcome = {"type": "ok", "base_offset": number, "attempts": [attempt]}
        return {**ORDERS, **names, "record_count": 1, "error": None, **outcome}

    def poll(self, process: str, phase: str, *, node: int = 0, epoch: int = 0) -> Line:
        """A consumer is given all three batches."""
        batches = [
            {"base_offset": number, "last_offset": number, "leader_epoch": 0, "crc": crc}
            for number, crc in enumerate(self.crcs)
        ]
        place = {"phase": phase, "node": node, "leader_epoch": epoch, "position": 0, "seek": True, "error": None}
        return {**ORDERS, "f": "poll", "type": "ok", "process": process, **place, "batches": batches}

    @property
    def live(self) -> Line:
        """The live consumer's poll."""
        return self.history[6]

    @property
    def final(self) -> Line:
        """The final consumer's poll."""
        return self.history[7]

    @staticmethod
    def _started(role: str) -> Line:
        return {"type": "NodeStarted", "role": role, "properties": {}, "broker_epoch": 2}


def encode(number: int, *, sequence: int | None = None, attributes: int = 0, records: bytes = b"") -> bytes:
    """Returns a batch of one record by Kafka's format; unless it is given, the content of the record is left out."""
    shown = number if sequence is None else sequence
    body = struct.pack(">hiqqqhii", attributes, 0, number, number, 7, 0, shown, 1) + records
    return struct.pack(">qiibI", number, len(body) + 9, 0, 2, crc32c(body)) + body


def _write(file: Path, lines: list[Line]) -> None:
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _lacks_the_end(story: Story) -> None:
    story.logs[1].pop()


def _leads_with_less(story: Story) -> None:
    del story.brokers[1][3]


def _gone_everywhere(story: Story) -> None:
    story.logs = {node: batches[:2] for node, batches in story.logs.items()}


def _other_batch(story: Story) -> None:
    story.brokers[1][3]["crc"] = 1


def _never_sent(story: Story) -> None:
    del story.history[4:6]


def _refused(story: Story) -> None:
    story.history[5].update(type="fail", base_offset=None)


def _twice(story: Story) -> None:
    story.logs[1].append(encode(3, sequence=2))


def _falling_sequence(story: Story) -> None:
    story.logs[1].append(encode(3, sequence=1))


def _below_what_was_acknowledged(story: Story) -> None:
    story.history[3]["base_offset"] = 0


def _cut_off(story: Story) -> None:
    cut = {"reason": "diverging_epoch", "old_end_offset": 3, "new_end_offset": 1, "leader_epoch": 1}
    story.brokers[0].append({**ORDERS, "type": "LogTruncated", **cut})


def _above_the_high_watermark(story: Story) -> None:
    story.brokers[0][-1] = story.advance(2)


def _skipped(story: Story) -> None:
    del story.live["batches"][1]


def _seen_by_nobody(story: Story) -> None:
    del story.live["batches"][1]
    del story.final["batches"][1]


def _told_of_an_earlier_end(story: Story) -> None:
    told = {**story.live, "batches": [], "seek": False, "error": "OFFSET_OUT_OF_RANGE"}
    story.history.insert(7, told)
    story.history.insert(8, {**story.live, "batches": []})


def _in_a_transaction(story: Story, *, commits: bool, result: str, is_given: bool) -> None:
    """Has the three batches written in a transaction, and followed by its end."""
    story.batches = [encode(number, attributes=0x10) for number in range(3)]
    story.crcs = [read_batches(batch)[0].crc for batch in story.batches]
    story.history = [story.send(number, begins) for number in range(3) for begins in (True, False)]
    control = bytes((32, 0, 0, 0, 8)) + struct.pack(">hhBhi", 0, commits, 12, 0, 0) + b"\0"
    end = encode(3, sequence=-1, attributes=0x30, records=control)
    story.logs = {node: [*story.batches, end] for node in (0, 1)}
    transaction = {"f": "transaction", "type": "ok", "result": result, "operation_id": "t"}
    story.history.append({**transaction, "sends": [f"producer-0:{number}" for number in range(3)]})
    given = [{"base_offset": number, "crc": story.crcs[number]} for number in range(3)] if is_given else []
    story.history.append({**ORDERS, "f": "committed_read", "process": "reader", "batches": given})


def _aborted_and_read(story: Story) -> None:
    _in_a_transaction(story, commits=False, result="abort", is_given=True)


def _committed_and_aborted(story: Story) -> None:
    _in_a_transaction(story, commits=False, result="commit", is_given=False)


def _torn(story: Story) -> None:
    _in_a_transaction(story, commits=True, result="commit", is_given=True)
    abort = bytes((32, 0, 0, 0, 8)) + struct.pack(">hhBhi", 0, 0, 12, 0, 0) + b"\0"
    for log in story.logs.values():
        log.insert(1, encode(1, sequence=-1, attributes=0x30, records=abort))


SPOILT: dict[str, Callable[[Story], None]] = {
    "D1": _lacks_the_end,
    "D2": _leads_with_less,
    "D4": _gone_everywhere,
    "D5": _lacks_the_end,
    "D6": _lacks_the_end,
    "D7": _other_batch,
    "D10": _never_sent,
    "D11": _refused,
    "D12": _twice,
    "D13": _falling_sequence,
    "D14": _below_what_was_acknowledged,
    "D15": _cut_off,
    "D16": _above_the_high_watermark,
    "C1": _skipped,
    "C2": _seen_by_nobody,
    "C3": _told_of_an_earlier_end,
    "X1": _aborted_and_read,
    "X2": _torn,
    "X3": _committed_and_aborted,
}


def test_a_run_in_order_is_valid(tmp_path: Path) -> None:
    assert Story().judged(tmp_path / "run") == Verdict("valid", None, 0, {}, [])


@pytest.mark.parametrize("check", CHECKS)
def test_each_check_fires(check: str, tmp_path: Path) -> None:
    story = Story()
    if check in ("D6",):  # both call it committed, so that the logs must be equal
        story.brokers[1].append({**story.advance(3), "leader_epoch": 1})
        story.logs[1][1] = encode(1, sequence=9)
    else:
        SPOILT[check](story)
    verdict = story.judged(tmp_path / "run")
    assert check in verdict.findings
    assert verdict.verdict == "violation"


@pytest.mark.parametrize("properties", [{}, {"log.retention.bytes": 100}])
def test_what_expires_a_follower_deletes_by_itself(properties: Line, tmp_path: Path) -> None:
    story = Story()
    for lines in (*story.brokers.values(), story.controller):
        lines[0]["properties"] = properties
    followed = {"leader_epoch": 0, "high_watermark": 0, "leader": 0, "log_end_offset": 3}
    raised = {"old": 0, "new": 2, "cause_id": "retention"}
    story.brokers[1][4:4] = [
        {**ORDERS, "type": "BecameFollower", **followed},
        {**ORDERS, "type": "LogStartOffsetRaised", **raised},
    ]
    del story.logs[1][:2]
    assert ("D1" in story.judged(tmp_path / "run").findings) is (not properties)


@pytest.mark.parametrize("name", [*FIRES, *HOLDS])
def test_each_hand_written_run_breaks_the_same_checks_as_by_verify(name: str, tmp_path: Path) -> None:
    build, broken = FIRES.get(name) or (HOLDS[name], frozenset())
    assert judge(build(tmp_path / "run" / "1")).findings.keys() == broken & CHECKS.keys()


@pytest.mark.parametrize(("ends", "guarantee"), [((), "broken"), ((0, 1), "exceeded")])
def test_a_loss_is_within_the_guarantee_while_enough_replicas_are_whole(
    ends: tuple[int, ...], guarantee: str, tmp_path: Path
) -> None:
    story = Story()
    _lacks_the_end(story)
    for node in ends:
        end = {"ended_node": node, "ended_incarnation": 0, "end": "power_lost", "metadata_offset": 6}
        story.harness.insert(1, {"type": "IncarnationEnded", **end})
    assert story.judged(tmp_path / "run").guarantee == guarantee


def test_silence_proves_nothing(tmp_path: Path) -> None:
    story = Story()
    del story.controller[1:]
    story.harness.pop()
    verdict = story.judged(tmp_path / "run")
    assert verdict.verdict == "unknown"
    assert "nobody committed a partition" in verdict.doubts


def test_it_imports_the_standard_library_only() -> None:
    for file in PACKAGE.glob("*.py"):
        if file.name == "compare.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name is not None
                assert name.startswith("tests.independent") or name.split(".")[0] in sys.stdlib_module_names


def test_packed_files_have_the_lines_that_were_packed(tmp_path: Path, library: Library) -> None:
    run = library.run("kip-966/last-replica-standing", "kafka-3.9").directory
    packed = tmp_path / "run"
    pack_run(run, packed)
    files = sorted(packed.rglob("*.packed"))
    assert files
    for file in files:
        plain = next(each for each in run.rglob(f"{file.stem}.jsonl"))
        expected = [json.loads(line) for line in plain.read_text().splitlines()]
        got = list(read_packed(file.read_bytes()))
        assert len(got) == len(expected)
        for mine, theirs in zip(got[:-1], expected[:-1], strict=True):  # the seal is of other bytes
            assert {name: theirs.get(name) for name in mine} == mine


@pytest.mark.parametrize("era", ["kafka-3.9", "kip-966"])
def test_bundled_scenarios_are_judged_alike(era: str, library: Library) -> None:
    for name in ("kip-966/last-replica-standing", "kip-966/unclean-election"):
        run = library.run(name, era)
        assert list(compare.differences(judge(run.directory), run.report)) == []


@pytest.mark.parametrize("era", ERAS)
def test_schedules_are_judged_alike(era: str) -> None:
    assert [compare.compare(seed, era).disagreements for seed in (2, 3)] == [(), ()]


@pytest.mark.parametrize("plan", PLANS)
def test_past_failures_are_judged_alike(plan: str) -> None:
    assert compare.compared(parse_plan((REGRESSIONS / f"{plan}.txt").read_text()))[1] == ()


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return honest(tmp_path_factory.mktemp("tampered") / "honest" / "1")


TAMPERED = {**TOLD_BY_SEALS, **TOLD_BY_ACCOUNTS}
SEEN = (
    *("a high watermark removed", "a log start raised on disk", "records reordered in every replica"),
    *("offsets swapped in every replica", "an operation acknowledged twice", "an ack beyond 64 bits"),
)
"""Those that the independent oracle calls a violation."""


@pytest.mark.parametrize("name", TAMPERED)
def test_no_loss_in_a_tampered_run_is_called_valid(name: str, untouched: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(untouched, tmp_path / "1"))
    TAMPERED[name](run)
    assert (judge(run).verdict == "violation") is (name in SEEN)
    if name in SEEN:  # tests/unit/verification/test_tampering.py judges all of them
        assert verify(plan_run(0, open_run_directory(run))).report.verdict is not VerdictOfVerify.VALID


def test_runs_in_directories_are_compared(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    run = library.run("kip-966/last-replica-standing", "kafka-3.9").directory
    assert compare.main(["--runs", str(run)]) == 0
    assert capsys.readouterr().out == "1 runs (0 valid, 1 violation, 0 unknown), 0 disagreements\n"

"""Runs that held, altered afterwards and sealed again: each check of the independent oracle sees one of them."""

import json
import shutil
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from laststand.emulator.verification.judge import judge as verify
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.verdict.report import Verdict
from tests.independent.checks import CHECKS
from tests.independent.judge import judge
from tests.independent.kafka_log import CONTROL, CRC_BEGIN, HEADER_BYTES, crc32c
from tests.unit.verification.test_tampering import LOG, Tamper, altered, honest, with_event, without
from tests.verification.resealing import Line, reseal
from tests.verification.test_checks import HOLDS

Batches = list[bytearray]
BASES: Final[Mapping[str, Callable[[Path], Path]]] = {
    "honest": honest,
    "failover": HOLDS["kip-966 story"],
    "transaction": HOLDS["transaction"],
}
HISTORY: Final = "history.jsonl"
SEQUENCE_AT: Final = 53
COMMIT_AT: Final = HEADER_BYTES + 7


class Case(NamedTuple):
    """A tampering of a run, by which a check must fire."""

    check: str
    base: str
    tamper: Tamper


# --- Logs -------------------------------------------------------------------------------------------------------------


def in_logs(
    change: Callable[[Batches], Batches], *, nodes: tuple[int, ...] = (0, 1, 2), topic: str = "orders"
) -> Tamper:
    """Changes the batches in the logs of some nodes; their CRCs are made right again."""

    def tamper(run: Path) -> None:
        for node in nodes:
            path = run / f"nodes/{node}" / LOG.replace("orders", topic)
            batches = change(split(path.read_bytes()))
            for batch in batches:
                struct.pack_into(">I", batch, 17, crc32c(bytes(batch[CRC_BEGIN:])))
            path.write_bytes(b"".join(batches))

    return tamper


def split(content: bytes) -> Batches:
    batches, place = [], 0
    while place < len(content):
        end = place + 12 + struct.unpack_from(">i", content, place + 8)[0]
        batches.append(bytearray(content[place:end]))
        place = end
    return batches


def shortened(batches: Batches) -> Batches:
    return batches[:-1]


def altered_in_place(batches: Batches) -> Batches:
    batches[1][-1] ^= 1
    return batches


def repeated(batches: Batches) -> Batches:
    """The last batch is there once more, behind itself."""
    base, _, _, _, _, _, delta = struct.unpack_from(">qiibIhi", batches[-1])
    again = bytearray(batches[-1])
    struct.pack_into(">q", again, 0, base + delta + 1)
    return [*batches, again]


def falling(batches: Batches) -> Batches:
    """The last batch has the sequence number of none before it."""
    struct.pack_into(">i", batches[0], SEQUENCE_AT, 1_000_000)
    return batches


def aborting(batches: Batches) -> Batches:
    """Transactions that were committed are aborted."""
    for batch in batches:
        if struct.unpack_from(">h", batch, CRC_BEGIN)[0] & CONTROL:
            struct.pack_into(">h", batch, COMMIT_AT, 0)
    return batches


# --- Events and histories ---------------------------------------------------------------------------------------------


def cut_below_what_is_committed(run: Path) -> None:
    led = next(line for line in lines(run / "events/0-0.jsonl") if line["type"] == "BatchAppended")
    place = {name: led[name] for name in ("topic", "partition", "topic_id")}
    cut = {"reason": "diverging_epoch", "old_end_offset": 40, "new_end_offset": 0, "high_watermark": 0}
    with_event("events/1-0.jsonl", type="LogTruncated", **place, **cut, leader=0, leader_epoch=1)(run)


def later_leader_without_appends(run: Path) -> None:
    """Of the batches of the last leader no event tells."""
    last = max((each for each in (run / "events").glob("[012]-*.jsonl") if leads(each)), key=epoch_of)
    altered(f"events/{last.name}", lambda found: [line for line in found if line["type"] != "BatchAppended"])(run)


def leads(path: Path) -> bool:
    return any(line["type"] == "BecameLeader" for line in lines(path))


def epoch_of(path: Path) -> int:
    return max(int(str(line["leader_epoch"])) for line in lines(path) if line["type"] == "BecameLeader")


def lines(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def sends(change: Callable[[Line], Line | None], *, last: bool = False) -> Tamper:
    """Changes the lines of the first send, or of the last one."""

    def changed(found: list[Line]) -> list[Line]:
        operations = [line["operation_id"] for line in found if line["f"] == "send"]
        victim = operations[-1 if last else 0]
        kept = [change(dict(line)) if line.get("operation_id") == victim else line for line in found]
        return [line for line in kept if line is not None]

    return altered(HISTORY, changed)


def refused(line: Line) -> Line:
    return line if line["type"] == "invoke" else line | {"type": "fail", "base_offset": None}


def polls(change: Callable[[list[Line]], None], *, phase: str = "live") -> Tamper:
    """Changes the polls of one phase, in place."""

    def changed(found: list[Line]) -> list[Line]:
        change([line for line in found if line["f"] == "poll" and line["phase"] == phase])
        return found

    return altered(HISTORY, changed)


def given_less(found: list[Line]) -> None:
    found[1]["batches"] = []


def told_of_an_earlier_end(found: list[Line]) -> None:
    found[1].update(batches=[], error="OFFSET_OUT_OF_RANGE", type="info")
    found[2].update(seek=True, position=0, batches=found[0]["batches"])


def seen_by_nobody(run: Path) -> None:
    polls(given_less)(run)
    polls(lambda found: found[0]["batches"].pop(1), phase="final")(run)  # type: ignore[attr-defined]


CASES: Final = (
    Case("D1", "honest", in_logs(shortened, nodes=(0,))),
    Case("D2", "failover", later_leader_without_appends),
    Case("D4", "honest", in_logs(shortened)),
    Case("D5", "honest", in_logs(shortened, nodes=(0,))),
    Case("D6", "honest", in_logs(altered_in_place, nodes=(1,))),
    Case("D7", "honest", in_logs(altered_in_place, nodes=(1,))),
    Case("D10", "honest", sends(lambda _: None)),
    Case("D11", "honest", sends(refused)),
    Case("D12", "honest", in_logs(repeated)),
    Case("D13", "honest", in_logs(falling)),
    Case("D14", "honest", sends(lambda line: line | {"base_offset": 0} if line["type"] == "ok" else line, last=True)),
    Case("D15", "honest", cut_below_what_is_committed),
    Case("D16", "honest", without("events/0-0.jsonl", "HighWatermarkAdvanced")),
    Case("C1", "honest", polls(given_less)),
    Case("C2", "honest", seen_by_nobody),
    Case("C3", "honest", polls(told_of_an_earlier_end)),
    Case("X1", "transaction", in_logs(aborting)),
    Case("X2", "transaction", in_logs(aborting, topic="payments")),
    Case("X3", "transaction", in_logs(aborting)),
)


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    parent = tmp_path_factory.mktemp("bases")
    return {name: build(parent / name / "1") for name, build in BASES.items()}


@pytest.mark.parametrize("name", BASES)
def test_untouched_runs_are_valid(name: str, bases: Mapping[str, Path]) -> None:
    assert judge(bases[name]).verdict == "valid"


def test_each_check_has_a_tampering() -> None:
    assert {case.check for case in CASES} == set(CHECKS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.check)
def test_each_check_sees_a_tampered_run_and_verify_never_calls_it_valid(
    case: Case, bases: Mapping[str, Path], tmp_path: Path
) -> None:
    run = Path(shutil.copytree(bases[case.base], tmp_path / "1"))
    case.tamper(run)
    reseal(run)
    verdict = judge(run)
    assert case.check in verdict.findings
    assert verdict.verdict == "violation"
    assert verify(plan_run(0, open_run_directory(run))).report.verdict is not Verdict.VALID

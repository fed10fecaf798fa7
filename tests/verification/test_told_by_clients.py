"""Clusters of which nothing is known but what clients were told: no events of nodes, no logs."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest

from laststand.emulator.core import events as e
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import Offset
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.tables.vocabulary import tag
from laststand.emulator.verification.verdict.forms import summary
from laststand.emulator.verification.verdict.readers import Jump, JumpCause, Reader
from laststand.emulator.verification.verdict.report import CheckStatus, Verdict, VerdictReport
from tests.verification.resealing import reseal
from tests.verification.run_builder import CAUSE, HARNESS, Batch, RunBuilder, healthy, last_replica_standing

OF_PROCESSES = {tag(kind) for kind in (e.IncarnationStarted, e.IncarnationEnded, e.PowerLost)}
OF_CLIENTS = {"D1", "D5", "D10", "D11", "D12", "D14", "C1", "C2", "C3", "C4", "C5"}


def judged(run: RunBuilder, *, is_settled: bool = True, has_plan: bool = True) -> VerdictReport:
    """Returns the verdict on a run of which the harness has only steps and faults."""
    run.ending = "restore" if is_settled else "as_is"
    if is_settled:
        run.settle()
    directory = run.finish()
    shutil.rmtree(directory / "nodes")
    for path in (directory / "events").glob("[0-9]*.jsonl"):
        path.unlink()
    path = directory / "events" / "harness.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [
        line | ({"metadata_offset": 0} if "metadata_offset" in line else {})
        for line in lines
        if line["type"] not in OF_PROCESSES
    ]
    lines[0] |= {"witness": "clients", "ending": run.ending if has_plan else None}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reseal(directory)
    return judge_here(directory).report


def statuses(report: VerdictReport) -> dict[str, CheckStatus]:
    return {check.check_id: check.status for check in report.checks}


def drop(run: RunBuilder, batches: Iterable[Batch]) -> None:
    """Takes batches out of every log, without a word."""
    for log in run.logs.values():
        log[:] = [each for each in log if each not in batches]


def test_a_cluster_that_keeps_what_it_acknowledged_is_valid_and_only_clients_checks_are_asked(tmp_path: Path) -> None:
    report = judged(healthy(tmp_path / "run"))
    assert (report.doubts, report.verdict) == ((), Verdict.VALID)
    asked = {check for check, status in statuses(report).items() if status is not CheckStatus.NOT_ASKED}
    assert {"D1", "D5", "D10", "D12", "D14", "C1", "C2", "C3"} <= asked <= OF_CLIENTS
    assert "without a leader" not in summary(report)


@pytest.mark.parametrize(("era", "lost"), [("kafka-3.9", 100), ("kip-966", 0)])
def test_last_replica_standing_loses_the_same_records_as_where_everything_is_known(
    era: str, lost: int, tmp_path: Path
) -> None:
    report = judged(last_replica_standing(tmp_path / "run", era=era))
    assert report.lost_records == lost
    assert report.verdict is (Verdict.VIOLATION if lost else Verdict.VALID)
    assert report.guarantee is (Guarantee.NOT_KNOWN if lost else None)


def lose_one(run: RunBuilder) -> None:
    drop(run, [run.logs[0, "orders", 0][1]])


def test_a_record_that_is_dropped_where_nothing_was_broken_breaks_the_guarantee(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run")
    lose_one(run)
    report = judged(run)
    assert (report.verdict, report.lost_records, report.guarantee) == (Verdict.VIOLATION, 10, Guarantee.BROKEN)
    assert {"D1", "D5", "C1"} <= {check.check_id for check in report.violated()}


def test_where_a_step_did_not_come_to_its_end_the_guarantee_is_not_known(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run")
    lose_one(run)
    run.note(HARNESS, e.RunEnded(cause_id=CAUSE, problem="hook kill: broker 1 still answers after 20 s"))
    assert judged(run).guarantee is Guarantee.NOT_KNOWN


def test_without_a_plan_the_guarantee_is_not_known(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run")
    lose_one(run)
    report = judged(run, has_plan=False)
    assert (report.lost_records, report.guarantee) == (10, Guarantee.NOT_KNOWN)
    assert statuses(report)["D10"] is CheckStatus.NOT_ASKED


def test_what_lies_beyond_the_end_of_a_read_that_saw_no_settled_cluster_is_not_called_lost(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run")
    drop(run, run.logs[0, "orders", 0][-1:])
    assert judged(run, is_settled=False).lost_records == 0


def test_a_final_read_that_failed_proves_nothing(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run")
    lose_one(run)
    run.partitions["orders", 0].leader = None
    report = judged(run)
    assert (report.verdict, report.lost_records) == (Verdict.UNKNOWN, 0)


@pytest.mark.parametrize(("asked", "verdict"), [(10, Verdict.VALID), (5, Verdict.UNKNOWN), (None, Verdict.UNKNOWN)])
def test_records_below_the_log_start_are_neither_lost_nor_kept_unless_a_step_asked(
    asked: int | None, verdict: Verdict, tmp_path: Path
) -> None:
    run = healthy(tmp_path / "run")
    if asked is not None:
        run.step("delete_records", deletions=(e.RequestedDeletion("orders-0", Offset(asked)),))
    for node in (0, 1, 2):
        run.delete(node, 10)
    report = judged(run)
    assert (report.verdict, report.lost_records) == (verdict, 0)


def duplicate(run: RunBuilder) -> None:
    again = run.new_batch()
    first = run.logs[0, "orders", 0][0]
    again.crc, again.body = first.crc, first.body
    for node in (0, 1, 2):
        run.append(node, again, leader=node == 0)


def fabricate(run: RunBuilder) -> None:
    run.append(0, run.new_batch(), leader=True)


def give_what_was_refused(run: RunBuilder) -> None:
    run.send(outcome=OperationType.FAIL)


def acknowledge_below(run: RunBuilder) -> None:
    batch = run.new_batch()
    batch.base_offset = 0
    run.operate(batch)


def skip(run: RunBuilder) -> None:
    run.poll([run.logs[0, "orders", 0][-1]], process="consumer-1", position=0)
    run.poll([], process="consumer-1", position=50)


def send_back(run: RunBuilder) -> None:
    run.poll([], error="OFFSET_OUT_OF_RANGE")
    run.poll([], position=0, seek=True)


@pytest.mark.parametrize(
    ("spoil", "check_id"),
    [
        (duplicate, "D12"),
        (fabricate, "D10"),
        (give_what_was_refused, "D11"),
        (acknowledge_below, "D14"),
        (skip, "C1"),
        (send_back, "C3"),
    ],
)
def test_each_check_of_clients_finds_what_it_is_for(
    spoil: Callable[[RunBuilder], None], check_id: str, tmp_path: Path
) -> None:
    run = healthy(tmp_path / "run")
    spoil(run)
    assert statuses(judged(run))[check_id] is CheckStatus.VIOLATED


def test_a_harness_that_does_not_reach_its_end_makes_the_run_unknown(tmp_path: Path) -> None:
    run = healthy(tmp_path / "run")
    run.note(HARNESS, e.RunEnded(cause_id=CAUSE, problem="hook kill of node 1 failed"))
    assert judged(run).verdict is Verdict.UNKNOWN


# --- What applications were given ---------------------------------------------------------------------------------

FIRST, SECOND, OF_OTHER_BROKER = "kafka:shop@1000->0-0.1", "kafka:shop@1000->0-0.2", "kafka:shop@1000->1-0.1"


class Shop:
    """An application that reads a log of batches with ten records each."""

    def __init__(self, path: Path) -> None:
        self.run = healthy(path)
        while len(self.run.logs[0, "orders", 0]) < 6:
            self.run.send()
        self.log = list(self.run.logs[0, "orders", 0])

    def read(self, process: str, *batches: int, position: int | None = None) -> None:
        given = [self.log[each] for each in batches]
        start = given[0].base_offset if position is None else position
        self.run.poll(given, process=process, position=start, seek=True)

    def fail(self, process: str, position: int) -> None:
        self.run.poll([], process=process, position=position, seek=True, error="OFFSET_OUT_OF_RANGE")

    def readers(self) -> tuple[Reader, ...]:
        return judged(self.run).readers


def on_one_connection(shop: Shop) -> None:
    shop.read(FIRST, 0, 1)
    shop.read(FIRST, 2)


def on_two_connections(shop: Shop) -> None:
    shop.read(FIRST, 0, 1)
    shop.read(OF_OTHER_BROKER, 2)
    shop.read(FIRST, 3)


def back_by_its_group(shop: Shop) -> None:
    shop.run.group_position("fetch", None)
    shop.read(FIRST, 0, 1, 2)
    shop.run.group_position("commit", 15)
    shop.run.group_position("fetch", 15)
    shop.read(SECOND, 1, 2, 3, position=15)


def back_where_the_group_has_none(shop: Shop) -> None:
    shop.read(FIRST, 0, 1, 2)
    shop.run.group_position("fetch", None)
    shop.read(SECOND, 0, 1)


def sent_on(shop: Shop) -> None:
    shop.read(FIRST, 0)
    shop.fail(FIRST, 10)
    shop.read(FIRST, 3)


def sought(shop: Shop) -> None:
    shop.read(FIRST, 0, 1)
    shop.read(FIRST, 0)
    shop.read(FIRST, 4)


def two_of_a_name(shop: Shop) -> None:
    shop.read(FIRST, 0, 1)
    shop.read(SECOND, 0, 1)


def two_that_wait_at_the_end(shop: Shop) -> None:
    shop.read(FIRST, 0, 1)
    shop.read(SECOND, 2)
    shop.read(FIRST, 2, 3)
    shop.read(SECOND, 3)


@pytest.mark.parametrize(
    ("plays", "given", "twice", "never", "jumps"),
    [
        (on_one_connection, [30], "", "", []),
        (on_two_connections, [40], "", "", []),
        (back_by_its_group, [40], "15-29", "", [(30, 15, JumpCause.GROUP_POSITION)]),
        (back_where_the_group_has_none, [30], "0-19", "", [(30, 0, JumpCause.GROUP_POSITION)]),
        (sent_on, [20], "", "10-29", [(10, 30, JumpCause.OUT_OF_RANGE)]),
        (sought, [30], "0-9", "20-39", [(20, 0, JumpCause.NOT_KNOWN), (10, 40, JumpCause.NOT_KNOWN)]),
        (two_of_a_name, [20, 20], "", "", []),
        (two_that_wait_at_the_end, [40, 20], "", "", []),
    ],
)
def test_what_an_application_was_given_twice_or_never_is_reported_with_its_cause(
    plays: Callable[[Shop], None],
    given: list[int],
    twice: str,
    never: str,
    jumps: list[tuple[int, int, JumpCause]],
    tmp_path: Path,
) -> None:
    shop = Shop(tmp_path / "run")
    plays(shop)
    readers = shop.readers()
    assert [each.given for each in readers] == given
    for each in readers:
        assert (", ".join(map(str, each.twice)), ", ".join(map(str, each.never or ()))) == (twice, never)
        assert [(jump.expected, jump.position, jump.cause) for jump in each.jumps] == jumps


def test_a_record_that_took_the_place_of_another_one_is_never_given_to_who_has_passed_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "run")
    shop.read(FIRST, 0)
    shop.run.poll(
        [msgspec.structs.replace(shop.log[1], crc=shop.log[1].crc + 1)], process=FIRST, position=10, seek=False
    )
    shop.read(FIRST, 2)
    [reader] = shop.readers()
    assert (list(map(str, reader.never or ())), reader.jumps) == (["10-19"], ())
    assert reader.sentence == "shop was given orders-0 10-19 never"


def test_a_verdict_names_what_was_given_twice(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "run")
    back_by_its_group(shop)
    line = "shop of group shop was given orders-0 15-29 twice; from 30 to 15: its group was given that position"
    assert line in summary(judged(shop.run))


def test_what_was_there_before_a_tap_or_comes_past_it_is_no_phantom(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "run")
    shop.read(FIRST, 0)
    left = [each for each in shop.run.history if each["f"] != "send"]
    shop.run.history[:] = [{**each, "index": number} for number, each in enumerate(left)]
    report = judged(shop.run, has_plan=False)
    assert (statuses(report)["D10"], report.violated()) == (CheckStatus.NOT_ASKED, ())


def test_without_a_final_log_it_is_not_known_what_was_never_given(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "run")
    sent_on(shop)
    [reader] = judged(shop.run, is_settled=False).readers
    assert (reader.never, reader.jumps) == (None, (Jump(expected=10, position=30, cause=JumpCause.OUT_OF_RANGE),))

"""Last replica standing, end to end: played and judged; and its controls.

The story goes through the command line as a user would call it; ``tests/packaging`` has Spark judge it. Its controls
are played here, side by side, and judged together. What becomes of a verdict when files are missing or altered is asked
in ``test_altered_runs``.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from laststand.chaos.campaign import Campaign, EraOrder, play_runs, run_orders
from laststand.chaos.drivers import make_driver
from laststand.chaos.play.expectation import compare
from laststand.chaos.play.runner import Run, RunStatus
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario
from laststand.cli.program.exit_codes import ExitCode
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.switches import era_switches
from laststand.emulator.core.types import ClusterKind
from laststand.emulator.verification.facts.losses import CopyFate
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.story.run import RunStory
from laststand.emulator.verification.story.story_file import read_story
from laststand.emulator.verification.verdict.report import CheckStatus, Expected, Verdict, VerdictReport
from laststand.emulator.verification.verify import verify_runs
from tests.library import Library

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
STORY = "kip-966/last-replica-standing"
ISR_ONLY, ELR = "kafka-3.9", "kip-966"
SEED = 966

EVENT_FILES = ("harness-0", "100-0", "0-0", "1-0", "2-0", "2-1")
"""The story's incarnations: broker 2 comes back."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the command line when the story was played: exit code, lines, and the store with the runs."""

    exit_code: int
    lines: list[str]
    store: Path

    def run(self, era: str) -> Path:
        """The run directory of an era."""
        directory = self.store / STORY
        (found,) = [path.parent for path in directory.glob("2*/cluster.yaml") if f"era: {era}\n" in path.read_text()]
        return found

    def report(self, era: str) -> VerdictReport:
        """The verdict that was left in the run directory."""
        return msgspec.json.decode((self.run(era) / "verdict.json").read_bytes(), type=VerdictReport)


def laststand(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "laststand.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Told:
    store = tmp_path_factory.mktemp("story") / "store"
    eras = ("--era", ISR_ONLY, "--era", ELR)
    result = laststand("run", STORY, *eras, "--judge", "here", "--out", str(store), "--seed", str(SEED))
    assert result.returncode in (ExitCode.VALID, ExitCode.VIOLATION, ExitCode.UNKNOWN), result.stderr
    return Told(exit_code=result.returncode, lines=result.stdout.splitlines(), store=store)


# --- The story ------------------------------------------------------------------------------------------------------


def test_each_era_does_what_is_expected_of_it_and_the_last_lines_compare_them(story: Told) -> None:
    lost = story.report(ISR_ONLY).lost_records
    assert story.exit_code == 0, "\n".join(story.lines)
    assert story.lines[-2:] == [
        f"kafka-3.9  violation, guarantee broken, {lost} acks=all records lost, as expected",
        "kip-966    valid, 0 acks=all records lost, as expected",
    ]


def test_without_eligible_leader_replicas_acknowledged_records_are_gone(story: Told) -> None:
    report = story.report(ISR_ONLY)
    assert (report.verdict, report.guarantee) == (Verdict.VIOLATION, Guarantee.BROKEN)
    assert report.unknown_reasons == ()
    assert report.lost_records >= 1000
    assert "D1" in {check.check_id for check in report.violated()}
    assert sum(loss.records for loss in report.losses) == report.lost_records
    for loss in report.losses:
        told = " ".join(line.text for line in loss.story)
        assert "acknowledged" in told
        assert "Broker 2 lost power (keep: none)" in told
        assert "The controller elected broker 2" in told
        assert "truncated its log" in told


def test_with_them_nothing_is_gone_and_writes_resume_under_the_eligible_member(story: Told) -> None:
    report = story.report(ELR)
    assert (report.verdict, report.guarantee, report.losses) == (Verdict.VALID, None, ())
    assert report.unknown_reasons == ()
    held = [check for check in report.checks if PROMISES[check.check_id].only_of is not ClusterKind.ZOOKEEPER]
    assert {check.status for check in held} <= {CheckStatus.OK, CheckStatus.NOT_ASKED, CheckStatus.EXEMPT}
    # What the last replica acknowledged with acks=1 before it lost power is gone in this era, too.
    assert {each.exemption for check in held for each in check.exempted} == {Exemption.ACKS_1}
    acked = [counts.acked for counts in report.counts if counts.acks == -1]
    assert acked[0] >= 1500


def test_both_runs_have_the_story_that_kafka_has(story: Told) -> None:
    without, with_elr = story.report(ISR_ONLY).leaders, story.report(ELR).leaders
    assert without != with_elr
    assert any("leader none, ISR [2], ELR []" in line for line in without)
    assert any("leader none, ISR [], ELR [1, 2]" in line for line in with_elr)
    assert any("leader none, ISR [], ELR [1]" in line for line in with_elr)


def test_a_run_leaves_its_directory(story: Told) -> None:
    run = story.run(ELR)
    assert {path.name for path in run.iterdir()} >= {
        "scenario.yaml", "plan.yaml", "cluster.yaml", "events", "history.packed", "nodes", "verdict.json", "junit.xml",
        "run.log",
    }  # fmt: skip
    assert {path.stem for path in (run / "events").iterdir()} == set(EVENT_FILES)


# --- Controls ------------------------------------------------------------------------------------------------------


def campaign_of(name: str, store: Path, *, era: str) -> Campaign:
    return Campaign(
        scenario=load_scenario(find_scenario(name)),
        eras=(EraOrder(era=era, switches=era_switches(era), properties=()),),
        store=store,
        seed=SEED,
        toxiproxy=find_toxiproxy(),
    )


CONTROLS: Mapping[str, tuple[str, str]] = {"kill": (f"{STORY}-kill", ISR_ONLY), "flush": (f"{STORY}-flush", ELR)}
"""Scenario and era: what real files keep. The others are played in virtual time, and as processes by ``make soak``."""


def of_lines(run: Path, name: str) -> Path:
    """The file of that name, whatever the form of its lines."""
    (found,) = run.glob(f"{name}.*")
    return found


def play_until_interrupted(campaign: Campaign) -> Path:
    (order,) = run_orders(campaign)

    async def play() -> None:
        reached = asyncio.Event()

        def look(status: RunStatus) -> None:
            if status.step == 2:
                reached.set()

        playing = asyncio.create_task(Run(order, make_driver=make_driver, on_status=look).play())
        await reached.wait()
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)

    asyncio.run(play())
    return order.directory


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run directories of the controls and of a run that is interrupted."""
    store = tmp_path_factory.mktemp("controls")
    orders = {}
    for name, (scenario, era) in CONTROLS.items():
        (orders[name],) = run_orders(campaign_of(scenario, store, era=era))
    play_runs(list(orders.values()), on_status=lambda _status: None)
    runs = {name: order.directory for name, order in orders.items()}
    return {**runs, "interrupted": play_until_interrupted(campaign_of(STORY, store, era=ELR))}


@pytest.fixture(scope="module")
def reports(story: Told, played: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, VerdictReport]:
    """Verdicts on these runs and on a copy of the story's run under kip-966, from one verification."""
    copy = shutil.copytree(story.run(ELR), tmp_path_factory.mktemp("copies") / "again", symlinks=True)
    runs = {**played, "again": copy}
    return dict(zip(runs, verify_runs(tuple(runs.values()), spark=None), strict=True))


@pytest.mark.parametrize("control", CONTROLS)
def test_controls_are_what_their_scenarios_expect(control: str, reports: dict[str, VerdictReport]) -> None:
    (name, era), report = CONTROLS[control], reports[control]
    assert report.unknown_reasons == ()
    assert compare(report, load_scenario(find_scenario(name)).expectation(era)) == (Expected.MET, ()), report.violated()
    assert (report.lost_records == 0) == (report.verdict is Verdict.VALID)


def test_what_is_flushed_is_reported_and_is_what_a_power_loss_leaves(
    story: Told, played: dict[str, Path], reports: dict[str, VerdictReport]
) -> None:
    assert reports["flush"].doubts == ()
    synced, told = read_story(played["flush"]), read_story(story.run(ELR))
    assert [flushed_before(synced, node, synced.end_us) >= 100 for node in (0, 1, 2)] == [True] * 3
    [loss] = [cut for cut in told.partitions[0].cuts if cut.became is CopyFate.POWER_LOST]
    assert flushed_before(told, loss.node, loss.time_us) == loss.new_end < loss.old_end


def flushed_before(story: RunStory, node: int, time_us: int) -> int:
    """Up to where a broker's log was told to be on the disk before a time."""
    [own] = [each for each in story.partitions[0].flushed if each.node == node]
    return [point.value for point in own.points if point.time_us < time_us][-1]


def test_the_wide_story_loses_records_of_each_of_its_partitions(library: Library) -> None:
    losses = {(loss.topic, loss.partition) for loss in library.run(f"{STORY}-wide", ISR_ONLY).report.losses}
    assert losses == {(topic, partition) for topic in ("orders", "refunds") for partition in range(3)}


def test_a_run_is_judged_the_same_again(story: Told, reports: dict[str, VerdictReport]) -> None:
    first, again = story.report(ELR), reports["again"]
    assert (again.verdict, again.checks, again.counts, again.leaders) == (
        first.verdict,
        first.checks,
        first.counts,
        first.leaders,
    )


def test_verify_exits_with_2_where_an_event_file_is_gone(story: Told, tmp_path: Path) -> None:
    run = shutil.copytree(story.run(ELR), tmp_path / "run", symlinks=True)
    of_lines(run, "events/1-0").unlink()
    result = laststand("verify", "--judge", "here", str(run))
    assert result.returncode == 2, result.stderr
    assert "UNKNOWN" in result.stdout


def test_an_interrupted_run_is_unknown(reports: dict[str, VerdictReport]) -> None:
    assert reports["interrupted"].verdict is Verdict.UNKNOWN
    assert any("interrupted" in reason for reason in reports["interrupted"].unknown_reasons)

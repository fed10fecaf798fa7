"""The course of a suite: how many cells play at a time, when they are judged, and what ends it."""

import asyncio
import itertools
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from laststand.chaos.suite import player as player_module
from laststand.chaos.suite.cells import Cell
from laststand.chaos.suite.player import BATCH, Keep, SuitePlayer, SuiteSettings
from laststand.chaos.suite.results import CellStatus
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport
from tests.unit.chaos.suite.suites import Heard, Judge, Orders, cell, report


def suite(
    store: Path,
    cells: Iterable[Cell],
    settings: SuiteSettings,
    *,
    judge: Judge | None = None,
    heard: Heard | None = None,
) -> SuitePlayer:
    return SuitePlayer(
        iter(cells),
        settings=settings,
        make_order=Orders(store),
        judge=judge or Judge(),
        listener=heard or Heard(),
    )


def statuses(player: SuitePlayer) -> list[tuple[str, str]]:
    return [(result.scenario, result.status.value) for result in player.all_results()]


async def test_every_cell_is_played_judged_and_listed_in_order(tmp_path: Path) -> None:
    judge = Judge({"b": Verdict.VIOLATION, "c": Verdict.UNKNOWN})
    cells = [cell("a"), cell("b"), cell("c"), cell("d", skipped="no such fault there")]
    heard = Heard()
    player = suite(tmp_path, cells, SuiteSettings(jobs=2), judge=judge, heard=heard)
    await player.play()
    assert statuses(player) == [("a", "passed"), ("b", "failed"), ("c", "unknown"), ("d", "skipped")]
    _, failed, unknown, skipped = player.all_results()
    assert failed.reasons == ("the verdict is violation, expected valid",)
    assert unknown.reasons == ("a gap",)
    assert skipped.reasons == ("no such fault there",)
    assert failed.directory == str(tmp_path / "b kip-966 #1")
    assert (tmp_path / "b kip-966 #1" / "verdict.json").is_file()
    assert [event for name, event in heard.events if name.startswith("a ")] == ["began", "played", "passed"]


async def test_runs_are_judged_together_and_in_batches_while_others_play(tmp_path: Path) -> None:
    judge = Judge()
    names = [f"s{number}" for number in range(BATCH + 3)]
    await suite(tmp_path, [cell(name) for name in names], SuiteSettings(jobs=1), judge=judge).play()
    assert [name.partition(" ")[0] for batch in judge.batches for name in batch] == names
    assert len(judge.batches[0]) >= BATCH


class Runs:
    """Runs that go on until they are cancelled, or until so many of them are there."""

    def __init__(self) -> None:
        self.left_out: str | None = None
        self.wanted: int | None = None
        self.cancelled_by: str | None = None
        self.someone = asyncio.Event()
        self._there = 0
        self._all = asyncio.Event()

    def __call__(self, order: object, **_: object) -> "Runs":
        return self

    async def play(self) -> None:
        self._there += 1
        self.someone.set()
        if self.wanted is not None and self._there >= self.wanted:
            self._all.set()
        try:
            await self._all.wait()
        except asyncio.CancelledError as cancelled:
            self.cancelled_by = str(cancelled)
            raise


@pytest.fixture(autouse=True)
def runs_at_once(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Runs that are over as soon as they begin, unless a test asks for others."""
    made = Runs()
    made.wanted = 1
    monkeypatch.setattr(player_module, "Run", made)
    return made


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs()
    monkeypatch.setattr(player_module, "Run", made)
    return made


async def test_so_many_cells_play_at_a_time(tmp_path: Path, runs: Runs) -> None:
    runs.wanted = 3
    heard = Heard()
    await suite(tmp_path, [cell(name) for name in "abcdefg"], SuiteSettings(jobs=3), heard=heard).play()
    assert heard.most_playing == 3


async def test_a_cell_that_takes_too_long_is_stopped_and_judged(tmp_path: Path, runs: Runs) -> None:
    judge = Judge({"a": Verdict.UNKNOWN})
    player = suite(tmp_path, [cell("a")], SuiteSettings(jobs=1, timeout_s=0.001), judge=judge)
    await player.play()
    assert runs.cancelled_by == "stopped after 0.001 s"
    assert statuses(player) == [("a", "unknown")]


async def test_an_interrupted_suite_reports_what_it_has(tmp_path: Path, runs: Runs) -> None:
    player = suite(tmp_path, [cell("x", skipped="why"), cell("a"), cell("b")], SuiteSettings(jobs=1))
    playing = asyncio.create_task(player.play())
    await runs.someone.wait()
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    assert runs.cancelled_by == ""
    assert statuses(player) == [("x", "skipped"), ("a", "not played")]


async def test_cells_wait_for_verdicts_where_a_failure_is_to_end_the_suite(tmp_path: Path) -> None:
    begun: list[str] = []
    waiting = threading.Event()

    def judge(directories: Sequence[Path]) -> Sequence[VerdictReport]:
        assert waiting.wait(30)
        return [report(directory, Verdict.VIOLATION) for directory in directories]

    def endless() -> Iterator[Cell]:
        for repetition in itertools.count(1):
            begun.append(str(repetition))
            if len(begun) == 1 + BATCH:
                waiting.set()
            yield cell("a", repetition=repetition)

    player = SuitePlayer(
        endless(),
        settings=SuiteSettings(jobs=1, stops_at_failure=True),
        make_order=Orders(tmp_path),
        judge=judge,
        listener=Heard(),
    )
    await player.play()
    assert len(begun) == 1 + BATCH


@pytest.mark.parametrize("verdict", [Verdict.VIOLATION, Verdict.UNKNOWN])
async def test_nothing_is_begun_after_a_failure_if_that_is_asked_for(verdict: Verdict, tmp_path: Path) -> None:
    def endless() -> Iterator[Cell]:
        yield cell("a")
        yield cell("b")
        repetition = 1
        while True:
            repetition += 1
            yield cell("a", repetition=repetition)

    judge = Judge({"b": verdict})
    player = suite(tmp_path, endless(), SuiteSettings(jobs=1, stops_at_failure=True), judge=judge)
    await player.play()
    found = player.all_results()
    assert found[1].status in (CellStatus.FAILED, CellStatus.UNKNOWN)
    assert all(result.status is CellStatus.PASSED for result in found[2:])


@pytest.mark.parametrize(
    ("keep", "kept"),
    [(Keep.ALL, ["a kip-966 #1", "b kip-966 #1"]), (Keep.FAILURES, ["b kip-966 #1"]), (Keep.NONE, [])],
)
def test_run_directories_stay_as_asked(keep: Keep, kept: list[str], tmp_path: Path) -> None:
    judge = Judge({"b": Verdict.VIOLATION})
    player = suite(tmp_path, [cell("a"), cell("b")], SuiteSettings(jobs=2, keep=keep), judge=judge)
    asyncio.run(player.play())
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    assert [Path(result.directory).name for result in player.all_results() if result.directory is not None] == kept


async def test_a_suite_that_breaks_off_keeps_the_verdicts_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "b kip-966 #1").mkdir()
    player = suite(tmp_path, [cell("a"), cell("b")], SuiteSettings(jobs=1, stops_at_failure=True))
    with pytest.raises(ExceptionGroup) as raised:
        await player.play()
    assert raised.group_contains(ConfigError)
    assert [result.scenario for result in player.all_results()] == ["a", "b"]

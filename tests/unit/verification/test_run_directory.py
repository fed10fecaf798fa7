"""Runs that a path stands for."""

from pathlib import Path

from laststand.emulator.verification.reading.run_directory import find_runs


def made(path: Path) -> Path:
    (path / "events").mkdir(parents=True)
    return path


def test_a_directory_stands_for_the_runs_below_it(tmp_path: Path) -> None:
    first, second = made(tmp_path / "scenario/1"), made(tmp_path / "scenario/2")
    made(first / "nodes/0/run")
    (tmp_path / "scenario/latest").symlink_to(second)
    assert find_runs(tmp_path) == [first, second]
    assert find_runs(tmp_path / "scenario/latest") == [tmp_path / "scenario/latest"]


def test_a_run_stands_for_itself_and_so_does_what_holds_none(tmp_path: Path) -> None:
    run = made(tmp_path / "1")
    made(run / "nodes/0/run")
    assert find_runs(run) == [run]
    (tmp_path / "empty").mkdir()
    for other in (tmp_path / "empty", tmp_path / "missing"):
        assert find_runs(other) == [other]

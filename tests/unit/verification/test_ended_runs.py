"""Runs below a directory that have ended."""

from pathlib import Path

from laststand.emulator.verification.ended_runs import EndedRuns

END = b'{"type":"RunEnded","problem":null}\n'


def begun(path: Path) -> Path:
    (path / "events").mkdir(parents=True)
    (path / "events/2000-0.jsonl").write_bytes(b'{"type":"NodeStarted"}\n')
    return path


def write(run: Path, content: bytes) -> None:
    with (run / "events/2000-0.jsonl").open("ab") as file:
        file.write(content)


def end(run: Path) -> None:
    write(run, END)


def test_a_run_is_listed_once_when_it_has_ended_and_is_quiet(tmp_path: Path) -> None:
    ended = EndedRuns(tmp_path)
    run = begun(tmp_path / "era/scenario/1")
    assert ended.poll() == ended.poll() == []
    end(run)
    assert ended.poll() == []
    write(run, b'{"type":"NodeStopped"}\n')
    assert ended.poll() == []
    assert ended.poll() == [run]
    assert ended.poll() == []


def test_a_run_that_was_judged_or_lies_in_another_is_none(tmp_path: Path) -> None:
    judged = begun(tmp_path / "1")
    end(judged)
    (judged / "verdict.json").touch()
    inner = begun(begun(tmp_path / "2") / "nodes/0/run")
    end(inner)
    ended = EndedRuns(tmp_path)
    assert ended.poll() == ended.poll() == []


def test_the_end_is_looked_for_at_the_end(tmp_path: Path) -> None:
    run = begun(tmp_path / "1")
    end(run)
    write(run, b" " * (1 << 17))
    ended = EndedRuns(tmp_path)
    assert ended.poll() == ended.poll() == []


def test_a_directory_that_goes_away_is_no_error(tmp_path: Path) -> None:
    run = begun(tmp_path / "1")
    ended = EndedRuns(tmp_path)
    assert ended.poll() == []
    (run / "events/2000-0.jsonl").unlink()
    assert ended.poll() == ended.poll() == []

"""Runs that are written by hand, judged, and left as verification leaves them."""

from pathlib import Path

from laststand.emulator.report.run_files import ReportedRun, read_reported_run
from laststand.emulator.verification.judge_here import judge_here
from tests.verification.run_builder import RunBuilder, last_replica_standing


def left_by(run: RunBuilder) -> Path:
    """Returns the directory of a judged run."""
    return judged(run.finish())


def judged(directory: Path) -> Path:
    """Judges a run, and leaves what verification leaves."""
    judge_here(directory)
    return directory


def lost(path: Path) -> ReportedRun:
    """The demo under kafka-3.9: everything is lost."""
    return read_reported_run(left_by(last_replica_standing(path, era="kafka-3.9", tick_s=0.02)))


def kept(path: Path) -> ReportedRun:
    """The demo under kip-966: nothing is lost."""
    return read_reported_run(left_by(last_replica_standing(path, era="kip-966", tick_s=0.02)))

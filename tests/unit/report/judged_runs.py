"""Runs that are written by hand, judged, and left as verification leaves them."""

from pathlib import Path

from emulator.report.run_files import ReportedRun, read_reported_run
from emulator.verification.judge import judge
from emulator.verification.run_directory import open_run_directory
from emulator.verification.run_plan import plan_run
from emulator.verification.story_file import write_story
from emulator.verification.verdict_forms import write_verdict
from tests.verification.run_builder import RunBuilder, last_replica_standing


def left_by(run: RunBuilder) -> Path:
    """Returns the directory of a judged run."""
    return judged(run.finish())


def judged(directory: Path) -> Path:
    """Judges a run, and leaves what verification leaves."""
    found = judge(plan_run(0, open_run_directory(directory)))
    write_verdict(found.report, directory)
    write_story(found.story, directory)
    return directory


def lost(path: Path) -> ReportedRun:
    """The demo under kafka-3.9: everything is lost."""
    return read_reported_run(left_by(last_replica_standing(path, era="kafka-3.9", tick_s=0.02)))


def kept(path: Path) -> ReportedRun:
    """The demo under kip-966: nothing is lost."""
    return read_reported_run(left_by(last_replica_standing(path, era="kip-966", tick_s=0.02)))

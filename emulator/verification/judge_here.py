"""Judges one run in this process, without Spark, and writes the files of a verification into its directory."""

from pathlib import Path

from laststand.emulator.verification.judge import Judgement, judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.story.story_file import write_story
from laststand.emulator.verification.verdict.forms import write_verdict


def judge_here(directory: Path) -> Judgement:
    """Judges a run, and writes its verdict and its story.

    Raises:
        ConfigError: the path is no run directory.
        OSError: a file cannot be read or written.
    """
    found = judge(plan_run(0, open_run_directory(directory)))
    write_verdict(found.report, directory)
    write_story(found.story, directory)
    return found

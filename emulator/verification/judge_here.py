"""Judges one run in this process, without Spark, and leaves in its directory what verification leaves."""

from pathlib import Path

from emulator.verification.judge import Judgement, judge
from emulator.verification.run_directory import open_run_directory
from emulator.verification.run_plan import plan_run
from emulator.verification.story_file import write_story
from emulator.verification.verdict_forms import write_verdict


def judge_here(directory: Path) -> Judgement:
    """Judges a run, and writes its verdict and its story.

    Raises:
        ConfigError: it is no run directory.
        OSError: a file cannot be read or written.
    """
    found = judge(plan_run(0, open_run_directory(directory)))
    write_verdict(found.report, directory)
    write_story(found.story, directory)
    return found

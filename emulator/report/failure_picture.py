"""The picture of a run as lines of text, for reports of a run that was not as expected: JUnit, summaries, tests."""

import logging
from pathlib import Path
from typing import Final

from laststand.emulator.verification.story.story_file import read_story
from laststand.emulator.verification.verdict.report import Expected, VerdictReport

_log: Final = logging.getLogger(__name__)


def failure_picture(verdict: VerdictReport, directory: Path) -> tuple[str, ...]:
    """Returns the picture of the worst partition of a run that was not as expected.

    Returns ``None`` for a run that was as expected, and if nothing can be drawn: a picture changes no verdict.

    Args:
        verdict: on the run, compared with the expectation.
        directory: of the run, in which verification left ``story.json``.
    """
    if verdict.outcome is Expected.MET:
        return ()
    # Imported where something is drawn: numpy would delay the start of every command.
    from laststand.emulator.report.text_picture import text_picture
    from laststand.emulator.report.worst_first import worst_first

    try:
        story = read_story(directory)
        if not story.partitions:
            return ()
        partition = worst_first(verdict, story)[0]
        return (f"{partition.topic}-{partition.partition}", *text_picture(verdict, partition, story).splitlines())
    except Exception as error:
        _log.warning("there is no picture of %s: %s: %s", directory, type(error).__name__, error)
        return ()

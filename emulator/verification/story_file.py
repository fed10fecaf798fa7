"""``story.json``: written by verification, read by whatever draws a run."""

from pathlib import Path
from typing import Final

import msgspec

from emulator.core.errors import ConfigError
from emulator.verification.run_story import STORY_VERSION, RunStory
from emulator.verification.verdict_forms import write_whole

STORY_FILE: Final = "story.json"


def write_story(story: RunStory, directory: Path) -> None:
    """Writes ``story.json`` into the run's directory, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(directory / STORY_FILE, msgspec.json.encode(story) + b"\n")


def read_story(directory: Path) -> RunStory:
    """Reads the story of a run.

    Raises:
        ConfigError: there is none, or one of another version.
    """
    path = directory / STORY_FILE
    try:
        story = msgspec.json.decode(path.read_bytes(), type=RunStory)
    except OSError as error:
        expected = f"a run that was verified: laststand verify RUN ({error.strerror})"
        raise ConfigError(key="story", value=str(path), expected=expected) from None
    except msgspec.DecodeError as error:
        expected = f"what this version of laststand verify writes ({error})"
        raise ConfigError(key="story", value=str(path), expected=expected) from None
    if story.version != STORY_VERSION:
        raise ConfigError(key="version", value=str(story.version), expected=f"{STORY_VERSION} in {path}")
    return story

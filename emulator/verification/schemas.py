"""The JSON Schemas of ``verdict.json`` and ``story.json``, made from the structs; their texts are beside this file.

Their versions are those of ``VerdictReport`` and ``RunStory``. Fields are added within a version, so a reader has to
ignore unknown fields.
"""

from pathlib import Path
from typing import Final

from laststand.emulator.core.struct_schema import struct_schema_text
from laststand.emulator.verification.story.run import STORY_VERSION, RunStory
from laststand.emulator.verification.verdict.report import VERSION, VerdictReport

SCHEMA_FILE: Final = Path(__file__).with_name("verdict.schema.json")
STORY_SCHEMA_FILE: Final = Path(__file__).with_name("story.schema.json")


def schema_text() -> str:
    """Returns the schema of verdicts as text."""
    return struct_schema_text(VerdictReport, VERSION, name="verdict")


def story_schema_text() -> str:
    """Returns the schema of stories as text."""
    return struct_schema_text(RunStory, STORY_VERSION, name="story")

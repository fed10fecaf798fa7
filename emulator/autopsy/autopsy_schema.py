"""The JSON Schema of ``laststand autopsy --json``, made from the structs; its text is beside this file."""

from pathlib import Path
from typing import Final

from laststand.emulator.autopsy.findings import AUTOPSY_VERSION, AutopsyReport
from laststand.emulator.core.struct_schema import struct_schema_text

AUTOPSY_SCHEMA_FILE: Final = Path(__file__).with_name("autopsy.schema.json")


def autopsy_schema_text() -> str:
    """Returns the schema of autopsies as text."""
    return struct_schema_text(AutopsyReport, AUTOPSY_VERSION, name="autopsy")

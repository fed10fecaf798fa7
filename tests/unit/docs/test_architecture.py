"""The names of tables and constants in ARCHITECTURE.md are in the code."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
ROOMS: Final = ("emulator", "chaos", "laststand/cli", "tests/simulation", "tests/verification")


def test_the_recipes_name_tables_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`(_?[A-Z]+_?[A-Z_]+)`", text)) - {"VERSION"}
    code = "\n".join(path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    words = set(re.findall(r"\b_?[A-Z]+_?[A-Z_]+\b", code))
    assert len(named) > 10
    assert named <= words

"""The Dockerfile builds where nothing can be pulled but its base, with the engine's classic builder, too."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
LINES: Final = (ROOT / "docker/Dockerfile").read_text(encoding="utf-8").splitlines()


def test_every_stage_begins_with_the_base_or_another_stage() -> None:
    sources = [line.split() for line in LINES if line.startswith("FROM ")]
    stages = {words[3] for words in sources}
    assert {words[1] for words in sources} <= {"${BASE_IMAGE}", "scratch"} | stages
    assert sum(words[1] == "${BASE_IMAGE}" for words in sources) == 3
    first = next(line for line in LINES if line and not line.startswith("#"))
    assert first == "ARG BASE_IMAGE=python:3.12-slim-bookworm"


def test_every_node_of_a_compose_file_has_a_folder_that_it_may_write_to() -> None:
    """A volume gets the owner of the folder that it covers: brokers are 0 to 89, controllers 100 to 104."""
    assert [line for line in LINES if "$(seq -f run/nodes/%g 0 104)" in line]


def test_nothing_asks_for_another_builder() -> None:
    assert not [line for line in LINES if re.match(r"#\s*(syntax|escape|check)\s*=", line)]
    assert not [line for line in LINES if re.search(r"--(mount|link|chmod|security|network)\b", line)]


def test_the_context_is_a_list_of_what_is_copied() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert next(line for line in ignored if not line.startswith("#")) == "*"
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        source.rstrip("/")
        for line in LINES
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }
    assert copied == allowed


def test_the_file_that_says_what_the_targets_are_for_exists() -> None:
    assert (ROOT / "docker/README.md").is_file()

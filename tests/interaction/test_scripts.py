"""Plays every script of ``testdata`` and compares what it prints."""

from pathlib import Path

import msgspec
import pytest

from tests.interaction.script import Session, format_script, parse_script

SCRIPTS = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)
def test_script(file: Path, request: pytest.FixtureRequest) -> None:
    text = file.read_text()
    session = Session()
    played = [msgspec.structs.replace(command, expected=tuple(session.run(command))) for command in parse_script(text)]
    actual = format_script(played)
    if request.config.getoption("--rewrite"):
        file.write_text(actual)
    else:
        assert actual == text


def test_a_wrong_expectation_is_found() -> None:
    text = "cluster brokers=1\n----\n7 brokers serve after 1 ms\n"
    (command,) = parse_script(text)
    assert tuple(Session().run(command)) != command.expected


def test_a_script_survives_parsing_and_formatting() -> None:
    text = "# Why.\ncluster brokers=1\n----\n1 broker\n\n# More.\nrun 10\n----\nlogs orders-0\n----\nbroker 0\n"
    assert format_script(list(parse_script(text))) == text

"""The token of a cluster: who can read it, who shows it, and that nobody prints it."""

from pathlib import Path

import pytest

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.rpc.run_token import LINE_LENGTH, METADATA_KEY, RunToken


def test_it_is_written_for_its_owner_alone_and_read_back(tmp_path: Path) -> None:
    token = RunToken.draw()
    token.write(tmp_path / "token")
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert RunToken.read(tmp_path / "token").matches(token.text)
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_the_first_of_several_draws_it(tmp_path: Path) -> None:
    first, second = (RunToken.read_or_draw(tmp_path / "token") for _ in range(2))
    assert first.text == second.text
    assert RunToken.draw().text != first.text


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_none(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    RunToken.draw().write(path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match="others can read it, too"):
        RunToken.read(path)


@pytest.mark.parametrize("content", ["", "0" * 63, "g" * 64, "Ü" * 64])
def test_something_else_is_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(content)
    with pytest.raises(ConfigError, match="it holds no token"):
        RunToken.read(path)


def test_a_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        RunToken.read(tmp_path / "token")
    with pytest.raises(ConfigError, match="No such file"):
        RunToken.read_or_draw(tmp_path / "nowhere" / "token")


def test_only_the_token_itself_is_recognised() -> None:
    token = RunToken.draw()
    assert token.is_in((("user-agent", "laststand/1"), *token.metadata))
    for shown in ((), ((METADATA_KEY, token.text[:-1]),), ((METADATA_KEY, b"\xff"),), (("token", token.text),)):
        assert not token.is_in(shown)
    assert len(token.line) == LINE_LENGTH


def test_it_is_not_printed() -> None:
    token = RunToken.draw()
    assert token.text not in f"{token} {token!r} {[token]}"

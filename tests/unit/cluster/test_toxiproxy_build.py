"""Places where toxiproxy-server is looked for, and the error when it is in none of them."""

import importlib.util
from pathlib import Path

import pytest

from laststand.emulator.cluster import toxiproxy_build
from laststand.emulator.cluster.toxiproxy_build import (
    BuildError,
    build_toxiproxy,
    cached_program,
    check_asks_for_token,
    find_toxiproxy,
    main,
)
from laststand.emulator.core.errors import ConfigError, MissingToolError


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return path


GO = """
[ "$1" = build ] || exit 2
[ "$CGO_ENABLED" = 0 ] || exit 3
[ -e main.go ] && [ -e go.sum ] || exit 4
echo "#!/bin/sh" > toxiproxy-server
/bin/chmod +x toxiproxy-server
"""


@pytest.fixture(autouse=True)
def _nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_cache_is_named_by_the_environment_or_below_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = cached_program().relative_to(tmp_path / "cache")
    assert below.parts[:2] == ("laststand", "toxiproxy")
    assert below.parts[2].startswith(toxiproxy_build.TOXIPROXY_VERSION)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cached_program() == tmp_path / "home" / ".cache" / below


def test_nowhere_is_a_configuration_error_that_says_what_to_do() -> None:
    with pytest.raises(
        MissingToolError, match=r"toxiproxy-server was not found; expected it at .* or on PATH.*laststand setup"
    ) as caught:
        find_toxiproxy()
    assert isinstance(caught.value, ConfigError)


def test_a_build_that_wants_a_token_comes_before_what_is_on_path(tmp_path: Path) -> None:
    on_path = program(tmp_path / "bin" / "toxiproxy-server", "")
    assert find_toxiproxy() == on_path
    program(tmp_path / "bin" / "go", GO)
    assert main() == 0
    assert find_toxiproxy() == cached_program()
    assert [path.name for path in cached_program().parent.iterdir()] == ["toxiproxy-server"]


def test_what_is_on_path_does_where_nothing_can_be_built_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on_path = program(tmp_path / "bin" / "toxiproxy-server", "")
    program(tmp_path / "bin" / "go", "echo no network; exit 1")
    assert main() == 0
    assert find_toxiproxy() == on_path
    assert "any local user can give it orders" in capsys.readouterr().err


def test_other_sources_are_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cached_program()
    program(tmp_path / "sources" / "main.go", "")
    monkeypatch.setattr(toxiproxy_build, "_SOURCES", tmp_path / "sources")
    assert cached_program() != before


def test_a_second_set_up_builds_nothing(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "go", "exit 1")
    program(cached_program(), "")
    assert main() == 0


def test_a_build_that_fails_leaves_nothing_and_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(tmp_path / "bin" / "go", "echo no network; exit 1")
    with pytest.raises(BuildError, match="no network"):
        build_toxiproxy()
    assert list(cached_program().parent.iterdir()) == []
    assert main() == 254
    assert "no network" in capsys.readouterr().err


def test_without_go_there_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(MissingToolError, match="go was not found"):
        build_toxiproxy()


def test_the_go_of_the_wheel_is_used_where_the_system_has_none() -> None:
    assert toxiproxy_build.find_go().parts[-3:] == ("go", "bin", "go")


def test_where_nodes_speak_tls_the_server_asks_for_the_token() -> None:
    check_asks_for_token(cached_program())
    with pytest.raises(MissingToolError, match="takes orders from every local user"):
        check_asks_for_token(Path("/usr/bin/toxiproxy-server"))

"""Where toxiproxy-server is looked for, and what is said when it is nowhere."""

import importlib.util
from pathlib import Path

import pytest

from emulator.cluster import toxiproxy_build
from emulator.cluster.toxiproxy_build import BuildError, build_toxiproxy, cached_program, find_toxiproxy, main
from emulator.core.errors import ConfigError, MissingToolError


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return path


GO = """
[ "$1" = install ] || exit 2
[ "$CGO_ENABLED" = 0 ] || exit 3
echo "#!/bin/sh" > "$GOBIN/server"
/bin/chmod +x "$GOBIN/server"
"""


@pytest.fixture(autouse=True)
def _nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_cache_is_named_by_the_environment_or_below_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = Path("laststand") / "toxiproxy" / toxiproxy_build.TOXIPROXY_VERSION / "toxiproxy-server"
    assert cached_program() == tmp_path / "cache" / below
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cached_program() == tmp_path / "home" / ".cache" / below


def test_nowhere_is_a_configuration_error_that_says_what_to_do() -> None:
    with pytest.raises(
        MissingToolError, match=r"toxiproxy-server was not found; expected it on PATH.*laststand setup"
    ) as caught:
        find_toxiproxy()
    assert isinstance(caught.value, ConfigError)


def test_a_build_is_found_and_one_on_path_comes_first(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "go", GO)
    assert main() == 0
    assert find_toxiproxy() == cached_program()
    assert [path.name for path in cached_program().parent.iterdir()] == ["toxiproxy-server"]
    on_path = program(tmp_path / "bin" / "toxiproxy-server", "")
    assert find_toxiproxy() == on_path


def test_a_second_set_up_builds_nothing(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "go", "exit 1")
    program(cached_program(), "")
    assert main() == 0


def test_a_build_that_fails_leaves_nothing_and_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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

"""Commands of the user's: read with located errors, run with a deadline, and nothing of one that hangs is left."""

import asyncio
import time
from functools import partial
from pathlib import Path

import pytest

from laststand.emulator.cluster.hooks import Hook, HookError, filled, read_hooks, run_check, run_hook
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.plan.yaml_cursor import ScenarioError

FILE = """\
nodes: {0: kafka-0, controller: kafka-100}
hooks:
  kill: {command: "stop-it {name}", effective_when: "is-down {node}", within: 2 s}
"""


def hook(command: str, *, check: str | None = None, within_ms: int = 5000) -> Hook:
    return Hook(name="kill", command=command, effective_when=check, within_ms=within_ms)


def run(found: Hook, folder: Path) -> bool:
    values = {"name": "kafka-0"}
    see = found.effective_when and partial(run_check, found.effective_when, values, folder=folder)
    return asyncio.run(run_hook(found, values, folder=folder, see=see or None))


def test_a_file_names_nodes_and_commands(tmp_path: Path) -> None:
    path = tmp_path / "hooks.yaml"
    path.write_text(FILE)
    hooks = read_hooks(path)
    assert hooks.names == {NodeId(0): "kafka-0", CONTROLLER: "kafka-100"}
    assert hooks.hooks["kill"] == Hook(
        name="kill", command="stop-it {name}", effective_when="is-down {node}", within_ms=2000
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("kill", "kil", 3, "did you mean"),
        ("0:", "zero:", 1, "id of a broker"),
        ("command", "comand", 3, "command"),
        ("2 s", "soon", 3, "no duration"),
        ("nodes", "node", 1, "nodes"),
    ],
)
def test_a_mistake_is_located(old: str, new: str, line: int, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "hooks.yaml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(ScenarioError, match=reason) as raised:
        read_hooks(path)
    assert raised.value.line == line


def test_values_are_quoted_and_words_of_the_shell_stay() -> None:
    text = "kill {name} ${name} {{.State}} {other}"
    assert filled(text, {"name": "a; rm b"}) == "kill 'a; rm b' ${name} {{.State}} {other}"


def test_a_command_runs_in_the_folder_of_its_file_and_its_effect_is_awaited(tmp_path: Path) -> None:
    assert run(hook("(sleep 0.3; touch {name}) &", check="test -e kafka-0"), tmp_path)
    assert not run(hook("touch never", check="test -e kafka-0"), tmp_path)
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (hook("echo no such service; exit 3"), "exit code 3: .*: no such service"),
        (hook("true", check="echo still up; false", within_ms=400), "within 0.4 s: true: still up"),
        (hook("sleep 60", within_ms=300), "within 0.3 s: sleep 60"),
    ],
)
def test_what_fails_hangs_or_has_no_effect_is_one_line(found: Hook, reason: str, tmp_path: Path) -> None:
    with pytest.raises(HookError, match=reason) as raised:
        run(found, tmp_path)
    assert "\n" not in str(raised.value)


def test_nothing_of_a_command_that_hangs_is_left(tmp_path: Path) -> None:
    with pytest.raises(HookError):
        run(hook("sleep 30 & echo $! > child; wait", within_ms=500), tmp_path)
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 5
    while _is_alive(child):
        assert time.monotonic() < deadline


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False

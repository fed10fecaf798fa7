"""The user's commands that break and mend nodes of a cluster that another party runs: ``hooks.yaml``.

::

    nodes: {0: kafka-0, 1: kafka-1, 2: kafka-2}      # names of brokers, as commands use them
    hooks:
      kill:
        command: docker compose kill --signal SIGKILL {name}
        effective_when: test -z "$(docker compose ps --quiet --status running {name})"
        within: 20 s

The shell runs a command in the folder of the file; at its deadline the command is killed with all its processes. A
command took effect once it and then ``effective_when`` have ended with 0; if ``effective_when`` ends with 0 before the
command, the command is not run.
"""

import asyncio
import contextlib
import os
import re
import shlex
import signal
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.core.errors import EmulatorError, shown
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.external_refusals import HOOKED, hook_name
from laststand.emulator.plan.fields import duration_ms
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.plan.yaml_cursor import Cursor, open_document
from laststand.emulator.user_files import read_text

_CONTROLLER_KEY: Final = "controller"
_WITHIN_MS: Final = 30_000
_PLACEHOLDER: Final = re.compile(r"(?<!\$)\{([a-z]+)\}")
_SEE_AGAIN_S: Final = 0.2
_OUTPUT_BYTES_MAX: Final = 4096


See: TypeAlias = Callable[[], Awaitable[str | None]]
"""Returns in words what shows that a hook has no effect yet; ``None`` once it has."""


class HookError(EmulatorError):
    """A hook failed, or no effect was observed in time."""


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One command.

    Attributes:
        name: key of the hook.
        command: for the shell; placeholders such as ``{name}`` stand for the node.
        effective_when: a command that ends with 0 if the hook took effect; ``None`` if Kafka's protocol shows the
            effect.
        within_ms: time for both.
    """

    name: str
    command: str
    effective_when: str | None
    within_ms: int


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a ``hooks.yaml``.

    Attributes:
        path: the file.
        names: of nodes, in commands.
        hooks: by name.
    """

    path: Path
    names: Mapping[NodeId, str]
    hooks: Mapping[str, Hook]


def read_hooks(path: Path) -> Hooks:
    """Reads a file of hooks.

    Raises:
        ScenarioError: the file is invalid; the text names file, line and key.
        OSError: the file cannot be read.
    """
    with open_document(path, read_text(path)).fields() as fields:
        names = _names(fields.required("nodes"))
        with fields.required("hooks").fields() as commands:
            allowed = [hook_name(kind) for kind in HOOKED]
            hooks = {key: _hook(key, value) for key, value in commands.pop_all(allowed)}
    return Hooks(path=path, names=names, hooks=hooks)


def _names(cursor: Cursor) -> dict[NodeId, str]:
    names: dict[NodeId, str] = {}
    fields = cursor.fields()
    for key, value in fields.pop_rest():
        if key != _CONTROLLER_KEY and not key.isdecimal():
            value.fail(f"a node is the id of a broker, or {_CONTROLLER_KEY}")
        names[CONTROLLER if key == _CONTROLLER_KEY else NodeId(int(key))] = value.text()
    return names


def _hook(name: str, cursor: Cursor) -> Hook:
    with cursor.fields() as fields:
        command = fields.required("command").text()
        effective_when, within = fields.optional("effective_when"), fields.optional("within")
        return Hook(
            name=name,
            command=command,
            effective_when=None if effective_when is None else effective_when.text(),
            within_ms=_WITHIN_MS if within is None else duration_ms(within),
        )


def filled(text: str, values: Mapping[str, str]) -> str:
    """Returns a command with its placeholders filled in and quoted for the shell; placeholders without a value stay."""
    return _PLACEHOLDER.sub(lambda found: shlex.quote(values[found[1]]) if found[1] in values else found[0], text)


async def run_hook(
    hook: Hook, values: Mapping[str, str], *, folder: Path, see: See | None, is_due: bool = False
) -> bool:
    """Runs a hook's command, and waits until its effect is seen.

    Args:
        hook: the command.
        values: of its placeholders.
        folder: the working directory.
        see: returns whether the effect is observed; ``None`` if the end of the command is the effect.
        is_due: whether the command is run even if its effect is observed before.

    Returns:
        False if the command was not run, because its effect was there before.

    Raises:
        HookError: the command failed, or no effect was observed in time.
    """
    command = filled(hook.command, values)
    missing: str | None = None
    try:
        async with asyncio.timeout(hook.within_ms / 1000):
            if see is not None and not is_due and await see() is None:
                return False
            code, printed = await _shell(command, folder)
            if code != 0:
                raise HookError(f"hook {hook.name} failed with exit code {code}: {shown(command)}{_words(printed)}")
            while see is not None:
                missing = await see()
                if missing is None:
                    break
                await asyncio.sleep(_SEE_AGAIN_S)
    except TimeoutError:
        what = f"hook {hook.name} was not seen to take effect within {hook.within_ms / 1000:g} s"
        raise HookError(f"{what}: {shown(command)}{_words(missing or '')}") from None
    return True


async def run_check(check: str, values: Mapping[str, str], *, folder: Path) -> str | None:
    """Runs a hook's ``effective_when``; returns the end of its output if it fails, else ``None``."""
    code, printed = await _shell(filled(check, values), folder)
    return None if code == 0 else printed


async def _shell(command: str, folder: Path) -> tuple[int, str]:
    """Runs a command, and returns its exit code and the end of its output.

    Processes that the command leaves in the background continue, unless the command is killed.
    """
    with tempfile.TemporaryFile() as printed:  # a pipe would stay open for as long as a process in the background
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        )
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        printed.seek(max(0, printed.seek(0, os.SEEK_END) - _OUTPUT_BYTES_MAX))
        return code, printed.read().decode(errors="replace")


def _words(printed: str) -> str:
    lines = printed.strip().splitlines()
    return f": {shown(lines[-1])}" if lines else ""

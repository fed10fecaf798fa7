"""Runs a program once, kills it, and removes what it had not synced: a power loss on any directory.

The preloaded library (``sync_shim.c``) records what the program does to files below its working directory, and
``storage/power_loss.py`` removes unsynced data, as it does for nodes. Everything that was in the directory before
counts as durable. The ledger's folder stands beside the directory, because links between the two must be possible, and
is removed at the end.
"""

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final

import msgspec
import psutil

from laststand.emulator.cluster.preloading import reason_not_seen
from laststand.emulator.cluster.sync_shim import sync_shim_environment
from laststand.emulator.core.disk import DiskModel, Keep
from laststand.emulator.core.errors import ConfigError, EmulatorError
from laststand.emulator.parent_death import die_with_parent
from laststand.emulator.storage.power_loss import PowerLossReport, count_as_durable, lose_power
from laststand.emulator.storage.sync_ledger import durable_prefixes, unnoted_names

_PR_SET_CHILD_SUBREAPER: Final = 36
_POLL_S: Final = 0.05
_BLOCK_BYTES: Final = 1 << 16
_KILL_ROUNDS_MAX: Final = 100
_STOPS_MAX: Final = 3
_NAMED_MAX: Final = 3


class RefusedError(EmulatorError):
    """No power loss was played: the program uses calls that are not modelled, ended too early, or cannot be identified.

    Attributes:
        reason: in words.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """The moment of a power loss; by default the end of the program.

    Attributes:
        after_output: text that the program prints, on stdout or stderr.
        after_s: seconds from its start on.
    """

    after_output: bytes | None = None
    after_s: float | None = None

    @property
    def is_end(self) -> bool:
        """The end of the program is the moment."""
        return self.after_output is None and self.after_s is None


class PowerLossTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a trial.

    Attributes:
        report: what was lost.
        after_s: when, in seconds from the start of the program on.
        killed: processes that were killed.
        exit_code: of the program, if it had ended by itself; negative for a signal.
        not_modelled: changes that the trial counts as durable or not, although a disk may do otherwise, in words.
    """

    report: PowerLossReport
    after_s: float
    killed: int
    exit_code: int | None
    not_modelled: tuple[str, ...]


def check_directory(directory: Path) -> None:
    """Checks that a ledger can record everything in a directory.

    Raises:
        ConfigError: something in it cannot be recorded.
    """

    def refuse(expected: str) -> ConfigError:
        return ConfigError(key="the current directory", value=str(directory), expected=expected)

    device = directory.stat().st_dev
    beside = directory.parent
    if beside.stat().st_dev != device or not os.access(beside, os.W_OK):
        raise refuse(f"one beside which the ledger may stand: {beside} is on another file system, or not writable")
    names: dict[int, str] = {}
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            path = f"{folder}/{name}"
            status = os.lstat(path)
            try:
                path.encode()
            except UnicodeEncodeError:
                raise refuse(f"only names that are UTF-8 in it, not {os.fsencode(path)!r}") from None
            if status.st_dev != device:
                raise refuse(f"one file system; {path} is another one")
            if status.st_nlink > 1 and name in files and names.setdefault(status.st_ino, path) != path:
                raise refuse(f"one name for each file in it; {names[status.st_ino]} and {path} are one (a hard link)")


def try_power_loss(
    command: Sequence[str],
    *,
    library: Path,
    directory: Path,
    moment: Moment,
    keep: Keep,
    disk: DiskModel,
    seed: int,
    show: Callable[[IO[bytes], bytes], None],
) -> PowerLossTrial:
    """Runs a program in a directory, kills it at a given moment, and removes from its files what it had not synced.

    Args:
        command: the program and its arguments.
        library: that is preloaded.
        directory: its working directory, which ``check_directory`` passed.
        moment: the moment of the power loss.
        keep: shape of the loss.
        disk: the file system that is played.
        seed: of all choices.
        show: receives the program's output, with its stream.

    Raises:
        RefusedError: the program did what cannot be modelled, or ended before the moment came; or this process has
            other children, which would be killed, too.
        StorageError: a file cannot be read or changed.
    """
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}-power-loss-") as scratch:
        ledger, notes = Path(scratch) / "ledger", Path(scratch) / "notes"
        count_as_durable(str(directory), ledger_folder=str(ledger))
        notes.touch()
        environment = sync_shim_environment(library, data=directory, ledger=ledger, notes=notes)
        with _Program(command, directory, environment, show) as program:
            has_come = program.run_until(moment, notes)
            unseen = _stop(program, library=library, directory=directory, ledger=ledger)
            after_s, exit_code = program.age_s, program.exit_code
            killed = program.kill()
        refused, not_modelled = _read_notes(notes, durable=durable_prefixes(str(ledger)))
        for reason in (refused, unseen):
            if reason is not None:
                raise RefusedError(f"{reason}; nothing was cut")
        if not has_come:
            raise RefusedError(f"it ended with exit code {exit_code} before the time had come; nothing was cut")
        report = lose_power([str(directory)], ledger_folder=str(ledger), keep=keep, seed=seed, disk=disk)
    return PowerLossTrial(report=report, after_s=after_s, killed=killed, exit_code=exit_code, not_modelled=not_modelled)


def _stop(program: "_Program", *, library: Path, directory: Path, ledger: Path) -> str | None:
    """Stops a program; returns why some of its changes are unknown, if they are.

    A file name that it changed just before may not be recorded yet, so missing names are looked up again.
    """
    unnoted: frozenset[str] | None = None
    for _ in range(_STOPS_MAX):
        program.stop()
        reason = program.reason_not_seen(library)
        found = unnoted_names(str(directory), folder=str(ledger))
        unnoted = found if unnoted is None else unnoted & found
        if reason is not None or not unnoted:
            return reason
        program.go_on()
        time.sleep(_POLL_S)
    program.stop()
    named = _listed(dict.fromkeys(sorted(unnoted or ())))
    return f"something that does not write through the C library has made, moved or removed {named}"


def _read_notes(notes: Path, *, durable: dict[int, int]) -> tuple[str | None, tuple[str, ...]]:
    """Returns why a program was stopped, and its calls that are not modelled.

    Files without a durable byte have none to lose in place.
    """
    refused: str | None = None
    paths: dict[str, list[str]] = {}
    for line in notes.read_bytes().splitlines():
        kind, reason, path, inode = msgspec.json.decode(line, type=tuple[str, str, str, int])
        if kind == "refused":
            refused = refused or f"it uses {reason}{f', for {path}' if path else ''}, which is not modelled"
        elif inode == 0 or durable.get(inode, 0) > 0:
            paths.setdefault(reason, []).append(path)
    return refused, tuple(f"{reason}: {_listed(dict.fromkeys(found))}" for reason, found in paths.items())


def _listed(paths: dict[str, None]) -> str:
    shown = list(paths)[:_NAMED_MAX]
    left = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {left} more" if left else "")


class _Program:
    """A program with all its descendants."""

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        environment: dict[str, str],
        show: Callable[[IO[bytes], bytes], None],
    ) -> None:
        if _is_parent():
            raise RefusedError("this process has other children, which would be killed, too")
        # Descendants whose parent has ended become children of this process, so that they are found and killed, too.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._show = show
        inherited = os.environ.get("LD_PRELOAD")
        preload = f"{environment['LD_PRELOAD']}:{inherited}" if inherited else environment["LD_PRELOAD"]
        settings = [f"{name}={value}" for name, value in {**environment, "LD_PRELOAD": preload}.items()]
        self._process = subprocess.Popen(
            die_with_parent(["env", *settings, *command]),
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        while self._process.poll() is None and not self._has_begun(f"LD_PRELOAD={preload}"):
            time.sleep(_POLL_S)
        self._started = time.monotonic()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._streams = {self._process.stdout: sys.stdout.buffer, self._process.stderr: sys.stderr.buffer}
        self._selector = selectors.DefaultSelector()
        for pipe, stream in self._streams.items():
            self._selector.register(pipe, selectors.EVENT_READ, stream)

    def _has_begun(self, setting: str) -> bool:
        """Returns whether the process is the program itself, and no longer its launcher."""
        try:
            environment = Path(f"/proc/{self._process.pid}/environ").read_bytes()
        except ProcessLookupError:
            return False  # it has ended since it was polled
        return os.fsencode(setting) in environment.split(b"\0")

    def __enter__(self) -> "_Program":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._selector.close()
        for pipe in self._streams:
            pipe.close()

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._started

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def run_until(self, moment: Moment, notes: Path) -> bool:
        """Returns whether a moment came; waits until it has come, or the program has ended or was refused."""
        ends = dict.fromkeys(self._streams.values(), b"")
        while b'["refused"' not in notes.read_bytes():
            if moment.after_s is not None and self.age_s >= moment.after_s:
                return True
            is_over = self._process.poll() is not None
            left = _POLL_S if moment.after_s is None else min(_POLL_S, max(0.0, moment.after_s - self.age_s))
            printed = self._show_printed(0 if is_over else left)
            for stream, block in printed:
                if moment.after_output is not None:
                    ends[stream] += block
                    if moment.after_output in ends[stream]:
                        return True
                    ends[stream] = ends[stream][-len(moment.after_output) :]
            if is_over and not printed:
                return moment.is_end
        return False

    def _show_printed(self, wait_s: float) -> list[tuple[IO[bytes], bytes]]:
        """Shows the program's new output; returns it, with the stream of each block."""
        printed = []
        for key, _ in self._selector.select(wait_s):
            block = os.read(key.fd, _BLOCK_BYTES)
            if block:
                self._show(key.data, block)
                printed.append((key.data, block))
            else:
                self._selector.unregister(key.fileobj)
        return printed

    def stop(self) -> None:
        """Stops all processes."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Resumes the stopped processes."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for process in self._descendants():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def reason_not_seen(self, library: Path) -> str | None:
        """Returns why the trial misses some writes of a process; ``None`` if it sees all of them."""
        reasons = (reason_not_seen(process, library) for process in self._descendants())
        return next((reason for reason in reasons if reason is not None), None)

    def kill(self) -> int:
        """Kills all processes, waits for their ends, and shows their last output; returns their number."""
        killed: set[int] = set()
        for _ in range(_KILL_ROUNDS_MAX):
            alive = [each for each in self._descendants() if each.is_running()]
            if not alive:
                break
            for process in alive:
                try:
                    if process.status() != psutil.STATUS_ZOMBIE:
                        killed.add(process.pid)
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
            psutil.wait_procs(alive, timeout=_POLL_S)
        self._process.wait()
        while self._show_printed(0):
            pass
        return len(killed)

    def _descendants(self) -> list[psutil.Process]:
        return psutil.Process().children(recursive=True)  # this process has no others


def _is_parent() -> bool:
    """Returns whether a child of this process runs."""
    return any(each.status() != psutil.STATUS_ZOMBIE for each in psutil.Process().children())

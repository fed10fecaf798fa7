"""``laststand``: parses the command line, runs a verb, and maps errors to exit codes."""

import errno
import gc
import logging
import os
import re
import resource
import sys
import traceback
from typing import Final

import click

from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.signals import Signals
from laststand.cli.program.streams import ClosedPipeError, OutputError, leave_streams, open_streams
from laststand.cli.sections import SectionedGroup

_USERS_TO_FIX: Final = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN),
)
"""Errors of the system: a file may not be read or written, or there is no room for it."""

_NO_FILES: Final = (errno.EINVAL, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.EIO)
"""Errors of paths that are not regular files, or that cannot be read."""

_LINK_LOOP: Final = "Symlink loop from "
_NO_THREAD: Final = "can't start new thread"

_MEANT: Final = "Did you mean"
_NO_CHOICE: Final = re.compile("'([^']*)' is not one of (.*)")
_NO_COMMAND: Final = re.compile("No such command '([^']*)'")
_QUOTED: Final = re.compile("'([^']*)'")

_MEMORY_MIN_MB: Final = 192
"""Address space without which NumPy ends the process by itself, and with 1: that would look like a verdict."""

_OBJECTS_OF_IMPORTS: Final = 100_000
"""About so many objects are left by what a verb imports; no garbage is among them."""

_CONTEXT: Final = {"help_option_names": ["-h", "--help"]}

_SECTIONS: Final = {
    "Runs": ("run", "verify", "report", "show", "compare", "replay", "simulate", "fuzz"),
    "Analysis": ("analyze", "sql", "export", "events"),
    "Real clusters": ("hooks", "tap", "import", "autopsy"),
    "Any program": ("power-loss",),
    "Catalogue": ("scenarios", "eras", "checks"),
    "Standing cluster": ("up", "status", "clients", "logs", "stop", "start", "down", "ps"),
    "Topics and records": ("topics", "produce", "consume", "delete-records", "inspect"),
    "Administration": ("elect-leaders", "reassign", "configs", "features", "acls", "metadata-quorum"),
    "Faults": ("chaos",),
    "Containers": ("compose", "attach", "docker"),
    "This program": ("setup", "kafka", "completion"),
}
"""Commands by the heading under which the help lists them."""

_PLACES: Final = {
    "events": "events:print_events",
    "import": "import_run:import_run",
}
"""Module and function of the commands whose name is not that of both."""


@click.group(cls=SectionedGroup, sections=_SECTIONS, places=_PLACES, context_settings=_CONTEXT)
@click.version_option(package_name="laststand")
def cli() -> None:
    """Break a Kafka-style cluster on purpose, and prove what it lost."""


def explain(error: Exception) -> int:
    """Prints an error, and returns the exit code."""
    from laststand.cli.program.failure import CommandFailedError
    from laststand.cli.program.user_error import UserError
    from laststand.emulator.core.errors import ConfigError, EmulatorError, causes_of

    cause = causes_of(error)[0]
    if isinstance(cause, OutputError):  # from one of several tasks
        error = cause
    match error:
        case ClosedPipeError():
            return ExitCode.CLOSED_PIPE
        case click.UsageError() if not isinstance(error, click.exceptions.NoArgsIsHelpError):
            path = "laststand" if error.ctx is None else error.ctx.command_path
            message = error.format_message().replace("is not a valid integer range", "is not a whole number")
            click.echo(f"{path}: {message}{_meant(error)} See {path} --help", err=True)
            return ExitCode.USAGE
        case click.ClickException():
            error.show()
            return ExitCode.USAGE
        case ConfigError() | UserError() | OutputError():
            code = ExitCode.USAGE
        case MemoryError():
            click.echo(f"laststand: not enough memory{_limit_in_words()}", err=True)
            return ExitCode.USAGE
        case RuntimeError() if str(error) == _NO_THREAD:
            click.echo(
                f"laststand: {_NO_THREAD}: too little memory, or too many processes{_limit_in_words()}", err=True
            )
            return ExitCode.USAGE
        case RuntimeError() if str(error).startswith(_LINK_LOOP):  # ``Path.resolve`` of Python 3.11
            click.echo(f"laststand: {os.strerror(errno.ELOOP)}: {str(error).removeprefix(_LINK_LOOP)}", err=True)
            return ExitCode.USAGE
        case CommandFailedError():
            code = error.exit_code
        case OSError() if error.filename is not None and error.errno in (*_USERS_TO_FIX, *_NO_FILES):
            click.echo(f"laststand: {error.filename}: {error.strerror}", err=True)
            return ExitCode.USAGE
        case OSError() if error.errno in _USERS_TO_FIX:
            code = ExitCode.USAGE
        case EmulatorError():
            code = ExitCode.INTERNAL
        case _:
            traceback.print_exception(error)
            return ExitCode.INTERNAL
    click.echo(f"laststand: {error}", err=True)
    return code


def _meant(error: click.UsageError) -> str:
    """Returns the command or choice that a mistyped one resembles, as the end of a message."""
    from laststand.emulator.core.errors import suggestion

    message = error.format_message()
    if _MEANT in message:
        return ""
    choice = _NO_CHOICE.search(message)
    if choice is not None:
        return suggestion(choice[1], _QUOTED.findall(choice[2])).replace("; did", " Did")
    command = _NO_COMMAND.search(message)
    if command is not None and error.ctx is not None and isinstance(error.ctx.command, click.Group):
        return suggestion(command[1], error.ctx.command.list_commands(error.ctx)).replace("; did", " Did")
    return ""


def _memory_limit_mb() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit >> 20


def _limit_in_words() -> str:
    limit_mb = _memory_limit_mb()
    return "" if limit_mb is None else f"; a limit allows this process {limit_mb} MiB (ulimit -v)"


def main() -> int:
    """Runs the command line; returns the exit code of the process."""
    logging.raiseExceptions = False  # a log that cannot be written any more is not worth a traceback
    gc.set_threshold(_OBJECTS_OF_IMPORTS)  # to look through them again and again takes a fifth of the start
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC reads it when it is imported, which a verb does
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # nothing here multiplies matrices, and each has its buffer
    limit_mb = _memory_limit_mb()
    if limit_mb is not None and limit_mb < _MEMORY_MIN_MB:
        click.echo(f"laststand: expected {_MEMORY_MIN_MB} MiB of memory{_limit_in_words()}", err=True)
        return ExitCode.USAGE
    signals = Signals()
    signals.install()
    code: int | None
    try:
        open_streams()
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = ExitCode.INTERRUPTED
    except Exception as error:
        code = explain(error)
    if leave_streams():
        return ExitCode.CLOSED_PIPE
    if code == ExitCode.INTERRUPTED:
        return signals.exit_code
    return code if isinstance(code, int) else ExitCode.VALID

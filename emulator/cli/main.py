"""``laststand``: parses the command line, runs a verb, and maps errors to exit codes."""

import contextlib
import errno
import logging
import sys
import traceback
from typing import Final

import click

from emulator.cli.analyze import analyze
from emulator.cli.attach import attach
from emulator.cli.autopsy import autopsy
from emulator.cli.catalogue import checks, eras
from emulator.cli.chaos import chaos
from emulator.cli.completion import completion
from emulator.cli.compose import compose
from emulator.cli.configs import configs
from emulator.cli.consume import consume
from emulator.cli.docker import docker
from emulator.cli.down import down
from emulator.cli.elect_leaders import elect_leaders
from emulator.cli.events import print_events
from emulator.cli.exit_codes import ExitCode
from emulator.cli.export import export
from emulator.cli.features import features
from emulator.cli.fuzz import fuzz
from emulator.cli.import_run import import_run
from emulator.cli.inspect import inspect
from emulator.cli.kafka import kafka
from emulator.cli.logs import logs
from emulator.cli.produce import produce
from emulator.cli.ps import ps
from emulator.cli.reassign import reassign
from emulator.cli.replay import replay
from emulator.cli.report import report
from emulator.cli.run import run
from emulator.cli.scenarios import scenarios
from emulator.cli.sections import SectionedGroup
from emulator.cli.setup import setup
from emulator.cli.show import show
from emulator.cli.signals import CLOSED_PIPE_EXIT_CODE, ClosedPipeError, Signals, leave_closed_pipes
from emulator.cli.simulate import simulate
from emulator.cli.sql import sql
from emulator.cli.start import start
from emulator.cli.status import status
from emulator.cli.stop import stop
from emulator.cli.topics import topics
from emulator.cli.up import up
from emulator.cli.verify import verify

_USERS_TO_FIX: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of files: somebody may not write there, or there is no room."""

_CONTEXT: Final = {"help_option_names": ["-h", "--help"]}


@click.group(cls=SectionedGroup, context_settings=_CONTEXT)
@click.version_option(package_name="laststand")
def cli() -> None:
    """Break a Kafka-style cluster on purpose, and prove what it lost."""


cli.add_section("Runs", run, verify, report, show, replay, simulate, fuzz)
cli.add_section("Analysis", analyze, sql, export, print_events)
cli.add_section("Real clusters", autopsy, import_run)
cli.add_section("Catalogue", scenarios, eras, checks)
cli.add_section("Standing cluster", up, status, logs, stop, start, down, ps)
cli.add_section("Topics and records", topics, produce, consume, inspect)
cli.add_section("Administration", elect_leaders, reassign, configs, features)
cli.add_section("Faults", chaos)
cli.add_section("Containers", compose, attach, docker)
cli.add_section("This program", setup, kafka, completion)


def explain(error: Exception) -> int:
    """Prints what went wrong, and returns the exit code."""
    from emulator.cli.failure import CommandFailedError
    from emulator.cli.user_error import UserError
    from emulator.core.errors import ConfigError, EmulatorError

    match error:
        case click.ClickException():
            error.show()
            return ExitCode.USAGE
        case ConfigError() | UserError():
            code = ExitCode.USAGE
        case CommandFailedError():
            code = error.exit_code
        case OSError() if error.errno in _USERS_TO_FIX:
            code = ExitCode.USAGE
        case EmulatorError():
            code = ExitCode.INTERNAL
        case _:
            traceback.print_exception(error)
            return ExitCode.INTERNAL
    click.echo(f"laststand: {error}", err=True)
    return code


def main() -> int:
    """Runs the command line; returns the exit code of the process."""
    logging.raiseExceptions = False  # a log that cannot be written any more is not worth a traceback
    signals = Signals()
    signals.hear()
    code: int | None
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        with contextlib.suppress(BrokenPipeError):
            click.echo("interrupted", err=True)
        code = ExitCode.INTERRUPTED
    except ClosedPipeError:
        leave_closed_pipes()
        return CLOSED_PIPE_EXIT_CODE
    except Exception as error:
        code = explain(error)
    if leave_closed_pipes():
        return CLOSED_PIPE_EXIT_CODE
    if code == ExitCode.INTERRUPTED:
        return signals.exit_code
    return code if isinstance(code, int) else ExitCode.VALID


if __name__ == "__main__":
    sys.exit(main())

"""``laststand``: parses the command line, runs a verb, and maps errors to exit codes."""

import signal
import sys
import traceback
from types import FrameType
from typing import Final

import click

from emulator.cli.chaos import chaos
from emulator.cli.completion import completion
from emulator.cli.configs import configs
from emulator.cli.consume import consume
from emulator.cli.down import down
from emulator.cli.elect_leaders import elect_leaders
from emulator.cli.exit_codes import ExitCode
from emulator.cli.features import features
from emulator.cli.inspect import inspect
from emulator.cli.logs import logs
from emulator.cli.produce import produce
from emulator.cli.ps import ps
from emulator.cli.reassign import reassign
from emulator.cli.replay import replay
from emulator.cli.run import run
from emulator.cli.sections import SectionedGroup
from emulator.cli.setup import setup
from emulator.cli.simulate import simulate
from emulator.cli.start import start
from emulator.cli.status import status
from emulator.cli.stop import stop
from emulator.cli.topics import topics
from emulator.cli.up import up
from emulator.cli.verify import verify

_CONTEXT: Final = {"help_option_names": ["-h", "--help"]}


@click.group(cls=SectionedGroup, context_settings=_CONTEXT)
@click.version_option(package_name="laststand")
def cli() -> None:
    """Break a Kafka-style cluster on purpose, and prove what it lost."""


cli.add_section("Runs", run, verify, replay, simulate)
cli.add_section("Standing cluster", up, status, logs, stop, start, down, ps)
cli.add_section("Topics and records", topics, produce, consume, inspect)
cli.add_section("Administration", elect_leaders, reassign, configs, features)
cli.add_section("Faults", chaos)
cli.add_section("This program", setup, completion)


def main() -> int:
    """Runs the command line; returns the exit code of the process."""
    from emulator.cli.failure import CommandFailedError
    from emulator.cli.user_error import UserError
    from emulator.core.errors import ConfigError

    _hear_signals()
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (ConfigError, UserError) as error:
        click.echo(f"laststand: {error}", err=True)
        return ExitCode.USAGE
    except CommandFailedError as error:
        click.echo(f"laststand: {error}", err=True)
        return error.exit_code
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except Exception:
        traceback.print_exc()
        return ExitCode.INTERNAL
    return code if isinstance(code, int) else ExitCode.VALID


def _hear_signals() -> None:
    """Makes SIGTERM an interruption like Ctrl-C; also where Ctrl-C is ignored, as in a job in the background.

    There it is blocked instead: asyncio sets up an orderly interruption only where nobody has replaced Python's own
    handler, and ``_interrupt`` calls that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(_signal: int, frame: FrameType | None) -> None:
    """Does what Ctrl-C does at this moment."""
    on_ctrl_c = signal.getsignal(signal.SIGINT)
    if not callable(on_ctrl_c):
        raise KeyboardInterrupt
    on_ctrl_c(signal.SIGINT, frame)


if __name__ == "__main__":
    sys.exit(main())

"""``laststand events``: the event log of a run as JSON lines, packed or not."""

from pathlib import Path

import click

from laststand.cli.options.run_argument import RUN
from laststand.emulator.core.errors import ConfigError


@click.command("events", short_help="Print the event log of a run as JSON lines.")
@click.argument("run", metavar="RUN", type=RUN)
@click.option("--history", "wants_history", is_flag=True, help="Print the clients' histories instead.")
def print_events(run: Path, *, wants_history: bool) -> None:
    """Print all events of the RUN directory, a JSON object on each line.

    The files of the processes are printed one after the other, ordered by name. A torn last line of a killed process is
    left out.
    """
    from laststand.emulator.storage.line_file import stream_lines
    from laststand.emulator.verification.reading.run_directory import open_run_directory

    directory = open_run_directory(run)
    paths = directory.histories if wants_history else directory.event_files()
    if not paths:
        raise ConfigError(key="run", value=str(run), expected="a history" if wants_history else "files in events/")
    for path in paths:
        for line in stream_lines(path):
            if line.endswith(b"\n"):
                click.echo(line, nl=False)

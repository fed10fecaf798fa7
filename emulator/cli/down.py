"""``laststand down``: stops a standing cluster in order."""

import time
from pathlib import Path

import click

from emulator.cli.exit_codes import ExitCode
from emulator.cli.output import Output, json_option
from emulator.cli.standing import ask, directory_argument, locate, lost


@click.command(short_help="Stop a standing cluster.")
@directory_argument
@click.option("--as-is", is_flag=True, help="Do not heal, resume or start anything first.")
@json_option
def down(place: Path, *, as_is: bool, output: Output) -> int:
    """Stop the cluster in DIR, by default the latest one.

    Clients finish, links are healed, nodes that are down or paused run again, and every partition gets a leader and a
    full ISR; a fresh consumer reads every partition; then brokers, controller and proxies stop in order.

    Exit code: 0 if all of that succeeded, 2 if not: the verdict will be unknown.
    """
    import msgspec

    from chaos.scenario.scenario import Ending
    from chaos.standing.messages import DownPhase, TakeDown, TakenDown

    directory = locate(place)
    started = time.monotonic()
    end: TakenDown | None = None
    for answer in ask(directory, TakeDown(ending=Ending.AS_IS if as_is else Ending.RESTORE)):
        if isinstance(answer, DownPhase):
            click.echo(f"[{time.monotonic() - started:6.1f} s] {answer.text}", err=True)
        elif isinstance(answer, TakenDown):
            end = answer
    if end is None:
        raise lost(directory)
    verify = f"laststand verify {directory}"
    if output is Output.JSON:
        document = {"directory": str(directory), "problem": end.problem, "verify": verify}
        click.echo(msgspec.json.format(msgspec.json.encode(document)))
    else:
        click.echo("the cluster is down" if end.problem is None else f"the cluster is down, but: {end.problem}")
        click.echo(f"  run directory: {directory}")
        click.echo(f"  verify it with: {verify}")
    return ExitCode.VALID if end.problem is None else ExitCode.UNKNOWN

"""``laststand power-loss``: simulates a power loss for any program: removes data that it had not synced."""

from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import click

from laststand.cli.output.output import Output, json_option
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.failure import CommandFailedError
from laststand.emulator.core.disk import DiskModel, Keep

if TYPE_CHECKING:
    from laststand.emulator.cluster.power_loss_trial import PowerLossTrial
    from laststand.emulator.storage.power_loss_plan import ByteLoss

_LISTED_MAX: Final = 20
_FATES: Final = {"vanished": "is gone", "came_back": "is back", "other_file": "is that of the file before"}


@click.command(
    "power-loss",
    short_help="Run a program, and lose what it had not synced.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--after-output", "text", metavar="TEXT", help="Lose power once the program has printed TEXT.")
@click.option(
    "--after",
    "after_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0, max=86_400),
    help="Lose power after this time.",
)
@click.option(
    "--keep",
    type=click.Choice([each.value for each in Keep]),
    default=Keep.NONE.value,
    show_default=True,
    help="What is left of the bytes that were not synced.",
)
@click.option(
    "--disk",
    type=click.Choice([each.value for each in DiskModel]),
    default=DiskModel.POSIX.value,
    show_default=True,
    help="The file system whose rules decide what is lost.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random choice of what is left.",
)
@click.option("--restart", is_flag=True, help="Start COMMAND again afterwards, and wait for its end.")
@json_option
def power_loss(
    command: tuple[str, ...],
    *,
    text: str | None,
    after_s: float | None,
    keep: str,
    disk: str,
    seed: int,
    restart: bool,
    output: Output,
) -> int:
    """Run COMMAND in the current directory, lose power, and remove from its files what it had not synced.

    Power is lost at the end of COMMAND, unless --after-output or --after names another moment. Then all its processes
    are killed, and files below the current directory are cut back to what was synced. What was there before counts as
    synced. The program must write through the C library: static programs, those in Go, io_uring and O_DIRECT are
    refused.

    Exit code: 0 power was lost, and after --restart COMMAND ended with 0; 1 after --restart it did not; 2 nothing was
    cut, because the program uses calls that are not modelled, or ended before that moment; 254 COMMAND cannot be run.
    """
    from laststand.emulator.cluster.power_loss_trial import Moment, RefusedError, check_directory, try_power_loss
    from laststand.emulator.cluster.preloading import check_preloadable
    from laststand.emulator.cluster.sync_shim import find_sync_shim

    if text is not None and after_s is not None:
        raise click.UsageError("--after-output and --after are two moments; expected one of them.")
    if text == "":
        raise click.UsageError("--after-output needs a text.")
    directory = Path.cwd()
    check_preloadable(command[0])
    check_directory(directory)
    try:
        trial = try_power_loss(
            command,
            library=find_sync_shim(),
            directory=directory,
            moment=Moment(after_output=None if text is None else text.encode(), after_s=after_s),
            keep=Keep(keep),
            disk=DiskModel(disk),
            seed=seed,
            show=_show_on_stderr if output is Output.JSON else _show,
        )
    except RefusedError as error:
        raise CommandFailedError(f"{command[0]}: {error}", exit_code=ExitCode.UNKNOWN) from None
    if output is Output.JSON:
        from laststand.cli.output.tables import print_json

        print_json(trial)
    else:
        _print(trial, directory)
    return _restart(command) if restart else ExitCode.VALID


def _show(stream: IO[bytes], block: bytes) -> None:
    stream.write(block)
    stream.flush()


def _show_on_stderr(_: IO[bytes], block: bytes) -> None:
    click.echo(block, nl=False, err=True)


def _restart(command: tuple[str, ...]) -> int:
    import subprocess

    click.echo("laststand: started again", err=True)
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        return ExitCode.VALID
    click.echo(f"laststand: after the power loss {command[0]} ended with exit code {code}", err=True)
    return ExitCode.VIOLATION


def _print(trial: "PowerLossTrial", directory: Path) -> None:
    ended = "" if trial.exit_code is None else f", after the program had ended with exit code {trial.exit_code}"
    click.echo(f"\npower was lost after {trial.after_s:.2f} s{ended}; processes killed: {trial.killed}")
    losses = [(each.path, f"the name {_FATES[each.fate.value]}") for each in trial.report.lost_names]
    losses += [(each.path, _loss_words(each)) for each in trial.report.lost_bytes]
    for path, words in losses[:_LISTED_MAX]:
        click.echo(f"  {path.removeprefix(f'{directory}/')}: {words}")
    if len(losses) > _LISTED_MAX:
        click.echo(f"  and {len(losses) - _LISTED_MAX} more; --json has all")
    if not losses:
        click.echo("  nothing was lost")
    for reason in trial.not_modelled:
        click.echo(f"not modelled: {reason}")


def _loss_words(loss: "ByteLoss") -> str:
    if loss.truncation_undone:
        words = [f"{loss.length_after} bytes again, not {loss.length_before}: a truncation is undone"]
    else:
        words = [f"{loss.length_after} of {loss.length_before} bytes are left, {loss.synced_length} were synced"]
    if loss.restored:
        words.append(f"{_size(loss.restored)} bytes are as before they were written over")
    if loss.zeroed:
        words.append(f"{_size(loss.zeroed)} bytes are zeros")
    return "; ".join(words)


def _size(ranges: tuple[tuple[int, int], ...]) -> int:
    return sum(end - start for start, end in ranges)

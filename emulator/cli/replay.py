"""``laststand replay``: plays a saved plan again."""

from pathlib import Path

import click

from emulator.cli.exit_codes import ExitCode
from emulator.cli.output import Output, json_option
from emulator.cli.user_error import UserError


@click.command(short_help="Play a saved plan again.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--driver", type=click.Choice(["simulator", "process"]), default="simulator", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Write the run into this new directory.")
@json_option
def replay(file: Path, driver: str, out: Path | None, output: Output) -> int:
    """Play FILE, a plan as ``simulate`` prints it or a run directory that it wrote, in the simulator.

    Exit code: 0 no promise was broken, 1 one was, 254 for anything that you can fix.
    """
    import msgspec

    from emulator.simulator.plan import parse_plan
    from emulator.simulator.run_writer import write_run
    from emulator.simulator.simulation import Simulation

    if driver == "process":
        raise UserError("--driver process is not built yet for plans; allowed: simulator")
    path = file / "plan.txt" if file.is_dir() else file
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a plan ({error})") from None
    plan = parse_plan(text)
    if out is None:
        simulation = Simulation(plan)
        simulation.play_plan()
    else:
        try:
            simulation = write_run(plan, out, name=f"replayed/{path.stem}")
        except OSError as error:
            raise UserError(f"--out {out}: {error.strerror}") from None
    outcome = simulation.outcome()
    if output is Output.JSON:
        click.echo(msgspec.json.format(msgspec.json.encode(outcome)))
    else:
        for alarm in outcome.alarms:
            click.echo(f"{'FOUND' if alarm in outcome.findings else 'not promised:'} {alarm}")
        click.echo(f"{outcome.steps} steps, {outcome.acks} acks, {outcome.elections} elections")
    return ExitCode.VIOLATION if outcome.findings else ExitCode.VALID

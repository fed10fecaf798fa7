"""``laststand chaos``: breaks and mends a standing cluster, with the steps of scenarios."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import click

from emulator.cli.exit_codes import ExitCode
from emulator.cli.failure import CommandFailed
from emulator.cli.output import Output, json_option
from emulator.cli.standing import ask, directory_option, locate, lost
from emulator.cli.user_error import UserError

StepValue: TypeAlias = "str | int | Sequence[StepValue] | Mapping[str, StepValue]"
"""What stands behind a step's verb."""

_NODE_HELP = "NODE is an id, `controller`, or leader(orders-0), follower(orders-0), last-isr(orders-0), elr(orders-0)."
_DIALLED_BY_NOBODY = "client"
_DIALS_NOBODY = ("controller", "100")

_node = click.argument("node")


@click.group(short_help="Break it, mend it.")
def chaos() -> None:
    """Break a standing cluster, and mend it, with the faults of scenarios.

    Each fault proves that it took effect. One that did not is reported as a no-op.

    Exit code: 0 it took effect, 1 it was a no-op, 2 it failed on the way, 254 nothing was done.
    """


@chaos.command()
@click.argument("step")
@directory_option
@json_option
def step(step: str, place: Path, output: Output) -> int:
    """Play STEP, written as in a scenario file, such as "until: {partition: orders-0, isr: [0, 1, 2]}"."""
    return _play(place, [step], output)


@chaos.command()
@click.argument("a")
@click.argument("b")
@click.option("--one-way", is_flag=True, help="Only what A dials to B; B can still call A.")
@directory_option
@json_option
def partition(a: str, b: str, *, one_way: bool, place: Path, output: Output) -> int:
    """Cut the links between A and B, nodes as for the other commands, or `client`."""
    if not one_way and (b == _DIALLED_BY_NOBODY or a in _DIALS_NOBODY):
        a, b = b, a
    there = _step("cut", {"from": a, "to": b})
    has_way_back = a != _DIALLED_BY_NOBODY and b not in _DIALS_NOBODY
    return _play(place, [there, _other_way] if has_way_back and not one_way else [there], output)


@chaos.command()
@_node
@click.option(
    "--clients", type=click.Choice(["cut", "connected"]), default="cut", show_default=True, help="Its links to clients."
)
@directory_option
@json_option
def isolate(node: str, clients: str, place: Path, output: Output) -> int:
    """Cut every link to and from NODE."""
    return _play(place, [_step("isolate", {"node": node, "clients": clients})], output)


@chaos.command(name="lose-responses")
@click.argument("a")
@click.argument("b")
@directory_option
@json_option
def lose_responses(a: str, b: str, place: Path, output: Output) -> int:
    """Lose what comes back on what A dials to B: requests are executed, answers vanish."""
    return _play(place, [_step("lose", {"responses": f"{a} -> {b}"})], output)


@chaos.command()
@click.argument("node", required=False)
@click.option("--from", "source", metavar="A", help="With --to: only what A dials to B.")
@click.option("--to", "target", metavar="B", help="With --from.")
@directory_option
@json_option
def heal(node: str | None, source: str | None, target: str | None, place: Path, output: Output) -> int:
    """Mend every link, or those of NODE."""
    if (source is None) != (target is None) or (source is not None and node is not None):
        raise UserError("give NODE, or --from and --to, or nothing for all links")
    if source is not None and target is not None:
        return _play(place, [_step("heal", {"from": source, "to": target})], output)
    return _play(place, [_step("heal", "all" if node in (None, "all") else {"node": str(node)})], output)


@chaos.command(name="power-loss")
@click.argument("nodes", nargs=-1, required=True)
@click.option(
    "--keep",
    type=click.Choice(["none", "prefix", "torn", "pages"]),
    default="none",
    show_default=True,
    help="What is left of the bytes that were not synced.",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Of what is left; drawn if not given.")
@directory_option
@json_option
def power_loss(nodes: tuple[str, ...], keep: str, seed: int | None, place: Path, output: Output) -> int:
    """Take the power from NODES at once: they are killed, and lose what they had not synced."""
    fields: dict[str, StepValue] = {"nodes": list(nodes), "keep": keep}
    if seed is not None:
        fields["seed"] = seed
    return _play(place, [_step("power_loss", fields)], output)


def _of_node(verb: str, text: str) -> click.Command:
    def command(node: str, place: Path, output: Output) -> int:
        return _play(place, [_step(verb, {"node": node})], output)

    command.__doc__ = f"{text}\n\n    {_NODE_HELP}"
    return chaos.command(name=verb)(_node(directory_option(json_option(command))))


_of_node("kill", "Kill NODE (SIGKILL); what it wrote stays, as the page cache outlives a process.")
_of_node("stop", "Stop NODE in order (SIGTERM).")
_of_node("start", "Start NODE, which is down.")
_of_node("pause", "Let NODE stand still (SIGSTOP); its connections stay open.")
_of_node("resume", "Let NODE, which is paused, run again.")


def _step(verb: str, value: StepValue) -> str:
    import yaml

    return str(yaml.safe_dump({verb: _plain(value)}, default_flow_style=True, sort_keys=False, width=10_000)).strip()


def _plain(value: StepValue) -> StepValue:
    """Returns a value with ids as numbers, as people write them."""
    match value:
        case str() if value.isdecimal():
            return int(value)
        case list():
            return [_plain(each) for each in value]
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case _:
            return value


def _other_way(played: str) -> str:
    """Returns the cut of the other direction, between the nodes that the first one found."""
    import yaml

    link = yaml.safe_load(played)["cut"]
    return _step("cut", {"from": link["to"], "to": link["from"]})


def _play(place: Path, steps: "list[str | Callable[[str], str]]", output: Output) -> int:
    """Plays steps, each given or made of the one before, and prints what they did."""
    import msgspec

    from chaos.standing.messages import PlayStep, StepFailed, StepPlayed
    from emulator.cli.tables import print_json

    directory = locate(place)
    played: list[StepPlayed] = []
    for step_or_next in steps:
        text = step_or_next if isinstance(step_or_next, str) else step_or_next(played[-1].step)
        for answer in ask(directory, PlayStep(step=text)):
            match answer:
                case StepPlayed():
                    played.append(answer)
                    break
                case StepFailed(reason=reason):
                    raise CommandFailed(f"{text}: {reason}", exit_code=ExitCode.UNKNOWN)
                case _:
                    continue
        else:
            raise lost(directory)
        if output is Output.TEXT:
            click.echo(f"{played[-1].step.removeprefix('{').removesuffix('}')} -> {played[-1].seen}")
    if output is Output.JSON:
        print_json([msgspec.structs.asdict(each) for each in played])
    return ExitCode.VALID if all(each.took_effect for each in played) else ExitCode.VIOLATION

"""The commands of ``laststand chaos``: generated from the table of actions, and a few written here."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args, get_origin

import click

from laststand.cli.options.completion import complete_nodes
from laststand.cli.output.output import Output, json_option
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.failure import CommandFailedError
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import ask, directory_option, locate, lost
from laststand.emulator.core.errors import suggestion
from laststand.emulator.core.types import Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.fields import Arrow, Ends, Messages, Nodes, Option, Words
from laststand.emulator.plan.lines import parse_words
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.nodes import CLIENT, CONTROLLER, ZOOKEEPER_WORD, NamedNode, NodeRef, parse_node
from laststand.emulator.plan.zookeeper_refusals import NO_ZOOKEEPER

if TYPE_CHECKING:
    from laststand.chaos.standing import messages

_NODE_HELP: Final = (
    "NODE is an id, `controller`, or leader(orders-0), follower(orders-0), last-isr(orders-0), elr(orders-0)."
)
_ENDS_HELP: Final = "A and B are nodes; A may be `client`, or a client of Kafka by its name."
_API_HELP: Final = (
    "API is the kind of message by Kafka's name, such as Fetch, Produce, AlterPartition or Vote, or Stream: the "
    "metadata that a controller sends to a broker."
)
_UNPROVED: Final = "nothing was seen to be affected by it, so the verdict on this cluster will be unknown"

COMMANDS: Final = click.Group()
"""All commands of ``laststand chaos``."""


@COMMANDS.command()
@click.argument("step")
@directory_option
@json_option
def step(step: str, place: Path, output: Output) -> int:
    """Play STEP, written as in a scenario file, such as "until: {partition: orders-0, isr: [0, 1, 2]}"."""
    from laststand.chaos.standing import messages

    return _report([_play(place, messages.PlayStep(step=step), output)], output)


@COMMANDS.command()
@click.argument("a", shell_complete=complete_nodes)
@click.argument("b", shell_complete=complete_nodes)
@click.option("--one-way", is_flag=True, help="Only what A dials to B; B can still call A.")
@directory_option
@json_option
def partition(a: str, b: str, *, one_way: bool, place: Path, output: Output) -> int:
    """Cut the links between A and B, nodes as for the other commands, `client`, or a client of Kafka."""
    there = Link(_node(a, place), _node(b, place))
    if not one_way and (_is_client(there.target) or there.source == CONTROLLER):
        there = Link(there.target, there.source)
    played = [_perform(place, actions.Cut(link=there), output)]
    has_way_back = not _is_client(there.source) and there.target != CONTROLLER
    first = played[0].performed
    if has_way_back and not one_way and isinstance(first, actions.Cut):
        # The same two nodes, even if a role has moved on meanwhile.
        played.append(_perform(place, actions.Cut(link=Link(first.link.target, first.link.source)), output))
    return _report(played, output)


@COMMANDS.command()
@click.argument("node", required=False, shell_complete=complete_nodes)
@click.option("--from", "source", metavar="A", help="With --to: only what A dials to B.")
@click.option("--to", "target", metavar="B", help="With --from.")
@directory_option
@json_option
def heal(node: str | None, source: str | None, target: str | None, place: Path, output: Output) -> int:
    """Heal every link, or those of NODE."""
    if (source is None) != (target is None) or (source is not None and node is not None):
        raise UserError("give NODE, or --from and --to, or nothing for all links")
    action: actions.ActionTemplate = actions.HealAll()
    if source is not None and target is not None:
        action = actions.HealLink(link=Link(_node(source, place), _node(target, place)))
    elif node not in (None, "all"):
        action = actions.HealNodes(nodes=(_node(str(node), place),))
    return _report([_perform(place, action, output)], output)


# --- Commands from the table --------------------------------------------------------------------------------------

_BY_HAND: Final = (actions.HealAll, actions.HealNodes, actions.HealLink)


def _api(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    if name not in Names.apis:
        raise UserError(f"{name!r} is no kind of message{suggestion(name, Names.apis)}: {_API_HELP}")
    return name


def _complete_api(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    return [each for each in Names.apis if each.startswith(typed)]


def _add_command(row: actions.ActionSpec) -> None:
    is_channel = any(isinstance(field, Messages) for field in row.fields.values())
    is_link = is_channel or any(isinstance(field, Ends | Arrow) for field in row.fields.values())
    is_node = any(isinstance(field, Nodes) for field in row.fields.values())
    options = [option for field in row.fields.values() for option in field.options]
    helps = [
        text for is_meant, text in ((is_node, _NODE_HELP), (is_link, _ENDS_HELP), (is_channel, _API_HELP)) if is_meant
    ]

    def command(place: Path, output: Output, **given: str | tuple[str, ...] | None) -> int:
        words = [f"{given['a']}->{given['b']}"] if is_link else []
        words += [str(given["api"]), str(given["way"])] if is_channel else []
        words += [",".join(given["nodes"] or ())] if is_node else []
        _check_zookeeper(place, [each for word in words for each in re.split(r"->|,", word)])
        words += [f"{each.word}={given[_parameter(each)]}" for each in options if given[_parameter(each)] is not None]
        try:
            action = parse_words(row, Words(words))
        except ValueError as error:
            raise UserError(f"{row.line_verb}: {error}") from None
        return _report([_perform(place, action, output)], output)

    command.__doc__ = "\n\n    ".join((str(row.kind.__doc__).replace("``", "`"), *helps))
    decorated: Callable[..., int] = directory_option(json_option(command))
    for option in reversed(options):
        decorated = _click_option(option)(decorated)
    if is_node:
        decorated = click.argument("nodes", nargs=-1, required=True, shell_complete=complete_nodes)(decorated)
    if is_channel:
        way = click.argument("way", type=click.Choice([each.value for each in Way]))
        decorated = click.argument("api", callback=_api, shell_complete=_complete_api)(way(decorated))
    if is_link:
        a = click.argument("a", shell_complete=complete_nodes)
        decorated = a(click.argument("b", shell_complete=complete_nodes)(decorated))
    COMMANDS.command(name=row.line_verb)(decorated)


def _parameter(option: Option) -> str:
    return option.key.replace("-", "_")


def _click_option(option: Option) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option(
        f"--{option.key}",
        _parameter(option),
        type=click.Choice(option.choices) if option.choices else click.STRING,
        metavar=None if option.choices else option.metavar,
        required=option.is_required,
        default=option.default,
        show_default=True,
        help=option.help,
    )


for _row in actions.ACTION_SPECS.values():
    _is_offered = _row.is_on_processes and _row.line_verb
    if _is_offered and not issubclass(_row.kind, (*_BY_HAND, actions.OfWorkload, actions.AdminAction)):
        _add_command(_row)

_HEADINGS: Final = {
    "Processes and disks": actions.ProcessAction,
    "Links": actions.LinkAction,
    "Single messages": actions.MessageAction,
}
_LINK_COMMANDS: Final = ("partition", "heal")


def _names_below(union: object) -> Iterator[str]:
    kinds = {get_origin(member) or member for member in get_args(union)}
    yield from (
        row.line_verb
        for row in actions.ACTION_SPECS.values()
        if row.kind in kinds and row.line_verb in COMMANDS.commands
    )
    if union is actions.LinkAction:
        yield from _LINK_COMMANDS


def _by_heading() -> dict[str, list[str]]:
    below = {heading: sorted({*_names_below(union)}) for heading, union in _HEADINGS.items()}
    listed = {name for names in below.values() for name in names}
    return {**below, "More": sorted(set(COMMANDS.commands) - listed)}


COMMANDS_BY_HEADING: Final = _by_heading()
"""Names of all commands, by what they are done to."""


# --- Asking the supervisor ----------------------------------------------------------------------------------------


def _check_zookeeper(place: Path, nodes: Sequence[str]) -> None:
    """Refuses a node that is named as the ZooKeeper server in a cluster without one."""
    if ZOOKEEPER_WORD not in nodes:
        return
    from laststand.chaos.standing.order import read_order

    order = read_order(locate(place))
    if order.zookeeper is None:
        raise UserError(f"{ZOOKEEPER_WORD}: {NO_ZOOKEEPER}: {order.era}")


def _node(text: str, place: Path) -> NodeRef:
    _check_zookeeper(place, (text,))
    try:
        return parse_node(text)
    except ValueError:
        raise UserError(f"{text!r} is no node. {_NODE_HELP}") from None


def _is_client(node: NodeRef) -> bool:
    """Returns whether an end of a link is a client, which is never dialled; here, only Kafka clients have names."""
    return node == CLIENT or isinstance(node, NamedNode)


def _perform(place: Path, action: actions.ActionTemplate, output: Output) -> "messages.StepPlayed":
    from laststand.chaos.standing import messages

    return _play(place, messages.Perform(action=action), output)


def _play(place: Path, command: "messages.Command", output: Output) -> "messages.StepPlayed":
    """Lets the supervisor play one step, and prints its outcome."""
    from laststand.chaos.standing import messages

    directory = locate(place)
    for answer in ask(directory, command):
        match answer:
            case messages.StepPlayed():
                if output is Output.TEXT:
                    click.echo(f"{answer.step.removeprefix('{').removesuffix('}')} -> {answer.outcome.seen}")
                if answer.outcome.took_effect and not answer.outcome.affected:
                    click.echo(_UNPROVED, err=True)
                return answer
            case messages.StepFailed(reason=reason):
                raise CommandFailedError(reason, exit_code=ExitCode.UNKNOWN)
            case _:
                continue
    raise lost(directory)


def _report(played: "list[messages.StepPlayed]", output: Output) -> int:
    from laststand.cli.output.tables import print_json

    if output is Output.JSON:
        print_json(
            [{"step": each.step, "seen": each.outcome.seen, "took_effect": each.outcome.affected} for each in played]
        )
    return ExitCode.VALID if all(each.outcome.affected for each in played) else ExitCode.VIOLATION

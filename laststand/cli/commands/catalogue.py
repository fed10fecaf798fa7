"""``laststand checks`` and ``eras``: what there is to ask for, a line each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import click
import msgspec

from laststand.cli.output.output import Output, json_option
from laststand.cli.program.user_error import UserError

ERA_SUMMARIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kafka-0.10": "followers truncate to their high watermark; no leader epochs (before KIP-101)",
        "kafka-0.11": "followers truncate by leader epochs (KIP-101)",
        "kafka-3.9": "KRaft without eligible leader replicas; AlterPartition checks broker epochs (KIP-903)",
        "kafka-4.2": "eligible leader replicas, as far as Kafka 4.2 has them",
        "kip-966-text": "KIP-966 as it is written, and nothing of Laststand's own",
        "kip-966": "KIP-966, and eleven repairs of Laststand's own that no KIP has (the default)",
        "kafka-2.5-zk": "ZooKeeper; leaders write the ISR themselves",
        "kafka-2.6-zk": "ZooKeeper; StopReplica carries leader epochs (KIP-570)",
        "kafka-3.1-zk": "ZooKeeper; leaders ask the controller to change the ISR (KIP-497)",
        "kafka-3.2-zk": "ZooKeeper; LeaderRecoveryState is stored (KIP-704)",
        "kafka-3.9-zk": "ZooKeeper, the last release that has it",
        "kip-550-zk": "ZooKeeper; KIP-497, KIP-704 and KIP-550 as they were written",
    }
)
"""What each era stands for."""


class _CheckListing(msgspec.Struct, frozen=True, kw_only=True):
    check_id: str
    name: str | None
    kind: str
    judged_by: str
    statement: str
    switches: Mapping[str, tuple[str, ...]]


@click.command(short_help="List the checks, or explain one.")
@click.argument("check_id", metavar="[ID]", required=False)
@json_option
def checks(check_id: str | None, output: Output) -> None:
    """Print every check that a run is judged by, or explain the one with this ID, such as D1."""
    from laststand.cli.output.tables import print_json, print_listing

    listings = _checks()
    if check_id is not None:
        listings = [each for each in listings if each.check_id.lower() == check_id.lower()]
        if not listings:
            raise UserError(f"there is no check {check_id!r}; laststand checks lists them")
    if output is Output.JSON:
        print_json(listings)
    elif check_id is not None:
        _explain(listings[0])
    else:
        print_listing(
            ("ID", "NAME", "KIND", "WHAT MUST HOLD"),
            [(each.check_id, each.name, each.kind, each.statement) for each in listings],
        )


def _checks() -> list[_CheckListing]:
    from laststand.emulator.core.promises import PROMISES
    from laststand.emulator.verification.rules.checks import CHECKS

    names = {check.check_id: check.name for check in CHECKS}
    return [
        _CheckListing(
            check_id=check_id,
            name=names.get(check_id),
            kind=promise.kind.value,
            judged_by=promise.judged_by.value,
            statement=promise.statement,
            switches=dict(promise.switches),
        )
        for check_id, promise in PROMISES.items()
    ]


_JUDGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "both": "laststand verify, and the simulator while it runs",
        "simulator": "the simulator while it runs",
        "verification": "laststand verify",
    }
)


def _explain(listing: _CheckListing) -> None:
    click.echo(f"{listing.check_id} {listing.name or ''}".rstrip() + f" ({listing.kind})")
    click.echo(f"  {listing.statement}")
    rules = "; ".join(f"{name} is {' or '.join(values)}" for name, values in listing.switches.items())
    click.echo(f"  promised: {f'where {rules}' if rules else 'in every era'}")
    click.echo(f"  judged by: {_JUDGES[listing.judged_by]}")


@click.command(short_help="List the eras.")
@json_option
def eras(output: Output) -> None:
    """Print every era: a preset of switches that names a real protocol (docs/eras.md, docs/eras-zookeeper.md)."""
    from laststand.cli.output.tables import print_json, print_listing
    from laststand.emulator.core.eras import ALL_ERAS, era_rules, rule_texts

    if output is Output.JSON:
        print_json(
            [{"era": era, "summary": ERA_SUMMARIES[era], "switches": rule_texts(era_rules(era))} for era in ALL_ERAS]
        )
        return
    print_listing(("ERA", "WHAT IT IS"), [(era, ERA_SUMMARIES[era]) for era in ALL_ERAS])

"""``laststand checks``: lists the checks, or explains one."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import click
import msgspec

from laststand.cli.output.output import Output, json_option
from laststand.cli.program.user_error import UserError
from laststand.emulator.core.errors import suggestion


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
    """Print all checks of runs, or explain the check with this ID, such as D1."""
    from laststand.cli.output.tables import print_json, print_listing

    listings = known = _checks()
    if check_id is not None:
        listings = [each for each in known if each.check_id.lower() == check_id.lower()]
        if not listings:
            near = suggestion(check_id.upper(), [each.check_id for each in known])
            raise UserError(f"there is no check {check_id!r}; laststand checks lists them{near}")
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

"""``laststand compose``: prints the compose file of a cluster."""

import click

from laststand.cli.options.completion import complete_eras
from laststand.cli.options.settings import ERA_HELP, set_option, tls_option
from laststand.cli.program.user_error import UserError


@click.command(short_help="Print a compose file.")
@click.option("--brokers", type=click.IntRange(min=1, max=90), default=3, show_default=True, metavar="N")
@click.option(
    "--racks",
    type=click.IntRange(min=0, max=26),
    default=0,
    metavar="N",
    help="Number of racks, assigned to brokers in turn.",
)
@click.option(
    "--controllers", type=click.Choice(["1", "3", "5"]), default="1", show_default=True, help="Controllers, 100 and up."
)
@click.option("--era", default=None, metavar="ERA", shell_complete=complete_eras, help=f"Protocol: {ERA_HELP}")
@tls_option
@set_option
def compose(
    brokers: int, racks: int, controllers: str, era: str | None, settings: tuple[str, ...], *, has_tls: bool
) -> None:
    """Print the compose file of controllers, brokers 0 to N-1, proxies and a client, for ``docker compose``.

    For an era with ZooKeeper a ZooKeeper server replaces the controllers; other files have that server in the profile
    ``zookeeper``, for a ``LASTSTAND_ERA`` that needs it.
    """
    from laststand.emulator.cluster.containers.compose import render
    from laststand.emulator.cluster.zookeeper_program import property_refusals
    from laststand.emulator.core.eras import era_rules, is_zookeeper_era
    from laststand.emulator.core.properties import TLS_PROPERTIES, node_properties
    from laststand.emulator.core.switches import DEFAULT_ERA
    from laststand.emulator.plan.overrides import parse_overrides
    from laststand.emulator.plan.unsupported_properties import voters_refusal

    era = era or DEFAULT_ERA
    overrides = parse_overrides(settings)
    overrides.apply(era_rules(era))
    properties = {**(TLS_PROPERTIES if has_tls else {}), **dict(overrides.properties)}
    if is_zookeeper_era(era):
        if controllers != "1":
            raise UserError(f"--controllers {controllers} has no place in era {era}, whose metadata is in ZooKeeper")
        for refused in property_refusals(node_properties(properties)):
            raise UserError(refused)
    if (no_voters := voters_refusal(properties, int(controllers))) is not None:
        raise UserError(f"--controllers {controllers}: {no_voters}")
    text = render(
        brokers=brokers,
        racks=racks,
        era=era,
        controllers=int(controllers),
        switches=dict(overrides.switches),
        properties=properties,
    )
    click.echo(text, nl=False)

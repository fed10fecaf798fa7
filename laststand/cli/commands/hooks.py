"""``laststand hooks``: prints a file of hooks for a cluster that is run in a usual way."""

import click

_PRESETS = ("compose", "systemd", "kubernetes", "toxiproxy")


@click.command(short_help="Print commands that break and heal nodes.")
@click.argument("preset", type=click.Choice(_PRESETS), metavar="|".join(_PRESETS))
@click.option(
    "--names",
    metavar="NAME,...",
    default="kafka-0,kafka-1,kafka-2",
    show_default=True,
    help="The services, units or pods of brokers 0, 1 and so on.",
)
def hooks(preset: str, names: str) -> None:
    """Print a file of commands that break and mend nodes, for ``laststand run --driver external --hooks``.

    laststand hooks compose --names kafka-0,kafka-1,kafka-2 > hooks.yaml
    """
    from laststand.emulator.cluster.hook_presets import preset as text_of

    click.echo(text_of(preset, names.split(",")), nl=False)

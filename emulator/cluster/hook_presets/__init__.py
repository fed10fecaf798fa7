"""Files of hooks for common kinds of clusters, as ``laststand hooks`` prints them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from laststand.emulator.core.errors import ConfigError

_FOLDER: Final = Path(__file__).parent

PRESETS: Final = ("compose", "systemd", "kubernetes", "toxiproxy")


def preset(name: str, nodes: Sequence[str]) -> str:
    """Returns a preset as the text of a ``hooks.yaml``.

    Args:
        name: name of the preset, from ``PRESETS``.
        nodes: names of brokers 0, 1 and so on, for the commands.

    Raises:
        ConfigError: YAML would misread a node's name.
    """
    for each in nodes:
        if not all(character.isalnum() or character in "._-@" for character in each) or not each:
            raise ConfigError(key="--names", value=each, expected="names of letters, digits and . _ - @, by commas")
    named = ", ".join(f"{number}: '{each}'" for number, each in enumerate(nodes))
    text = (_FOLDER / f"{name}.yaml").read_text()
    return text.replace("{NODES}", f"{{{named}}}").replace("COUNT", str(len(nodes)))

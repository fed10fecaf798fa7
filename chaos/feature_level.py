"""How a scenario file writes feature levels: a number, or a release where the feature is ``metadata.version``."""

from typing import Final

from chaos.yaml_cursor import Cursor
from emulator.core import metadata_version
from emulator.core.errors import ConfigError

LEVEL_MAX: Final = 32_767
"""Kafka's levels are 16 bits wide."""


def read_level(cursor: Cursor, feature: str) -> int:
    """Returns the level of a feature.

    Raises:
        ScenarioError: it is no level, or no release.
    """
    if feature != metadata_version.METADATA_VERSION:
        return cursor.integer(low=0, high=LEVEL_MAX)
    try:
        return metadata_version.level_of(cursor.text())
    except ConfigError as error:
        cursor.fail(f"{cursor.text()!r} is not allowed, allowed: {error.expected}")

"""Positions of ``laststand consume --group``: one file per group in the run directory.

This is no group coordinator: nothing is rebalanced, and the positions are not replicated. Two consumers of one group
read the same records, and the last one that stores its positions wins.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import Offset, TopicPartition
from laststand.emulator.plan.path_words import PATH_WORD_RULE, is_path_word
from laststand.emulator.user_files import read_bytes

GROUPS_FOLDER: Final = "groups"

_DECODER: Final = msgspec.json.Decoder(dict[str, dict[str, int]])


class GroupFile:
    """The positions of one group.

    Args:
        directory: the run's.
        group: name of the group.

    Raises:
        ConfigError: the name is not allowed for a group.
    """

    def __init__(self, directory: Path, group: str) -> None:
        if not is_path_word(group):
            raise ConfigError(key="--group", value=group, expected=PATH_WORD_RULE)
        self._path = directory / GROUPS_FOLDER / f"{group}.json"

    def positions(self) -> dict[TopicPartition, Offset]:
        """Returns the offset of the next record by partition.

        Raises:
            ConfigError: the file is damaged.
        """
        return {
            TopicPartition(topic, int(partition)): Offset(offset)
            for topic, partitions in self._read().items()
            for partition, offset in partitions.items()
        }

    def store(self, positions: Mapping[TopicPartition, Offset]) -> None:
        """Replaces the positions of these partitions, and keeps those of others."""
        document = self._read()
        for partition, offset in positions.items():
            document.setdefault(partition.topic, {})[str(partition.partition)] = int(offset)
        self._path.parent.mkdir(exist_ok=True)
        fresh = self._path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(document)))
        fresh.replace(self._path)

    def _read(self) -> dict[str, dict[str, int]]:
        try:
            return _DECODER.decode(read_bytes(self._path))
        except FileNotFoundError:
            return {}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ConfigError(
                key="--group", value=str(self._path), expected=f"positions of a group ({error})"
            ) from None

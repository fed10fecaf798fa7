"""Selects the partitions of a command: by name, by option, or in a JSON file as Kafka's tools read it."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from laststand.cli.program.user_error import UserError
from laststand.emulator.core.errors import shown
from laststand.emulator.user_files import read_bytes

if TYPE_CHECKING:
    from laststand.emulator.core.types import TopicPartition

FileT = TypeVar("FileT", bound=msgspec.Struct)

_PARTITION: Final = re.compile(r"([A-Za-z0-9._-]+)-([0-9]{1,9})")


def parse_partition(text: str) -> "TopicPartition":
    """Returns the partition that a text like ``orders-0`` names.

    Raises:
        UserError: the text does not name a partition.
    """
    from laststand.emulator.core.types import TopicPartition

    match = _PARTITION.fullmatch(text)
    if match is None:
        raise UserError(f"{shown(text)!r} is no partition: expected TOPIC-NUMBER, such as orders-0")
    return TopicPartition(match[1], int(match[2]))


def read_json_file(path: Path, kind: type[FileT], *, option: str) -> FileT:
    """Returns the content of a JSON file.

    Raises:
        UserError: the file cannot be read, or has another form; the text says where.
    """
    try:
        return msgspec.json.decode(read_bytes(path), type=kind)
    except OSError as error:
        raise UserError(f"{option} {path}: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{option} {path}: {error}") from None

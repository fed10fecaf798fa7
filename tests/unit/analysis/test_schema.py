"""The columns of every table follow from the structs, and each says what it means."""

from typing import NewType

import msgspec
import pytest

from laststand.emulator.analysis.catalogue import FILLED, TABLE_NAMES, own_columns, table_columns
from laststand.emulator.analysis.glossary import MEANINGS
from laststand.emulator.analysis.schema import columns_of, ddl_of
from laststand.emulator.analysis.tables import Envelope, Identity, Moment
from laststand.emulator.core.types import LeaderEpoch, NodeRole, Offset
from laststand.emulator.verification.tables.vocabulary import EVENT_TYPES

Strange = NewType("Strange", bytes)


class _Inner(msgspec.Struct):
    first: int
    second: str | None


class _Row(msgspec.Struct):
    """A row.

    Attributes:
        where: a place, which takes
            two lines to explain.
        how: in ``words``.
    """

    where: Offset | None
    how: NodeRole
    terms: tuple[LeaderEpoch, ...]
    entries: dict[str, str]
    inner: tuple[_Inner, ...]
    pairs: tuple[tuple[LeaderEpoch, Offset], ...]
    duration_ms: float
    is_clean: bool


class _Unfit(msgspec.Struct):
    strange: Strange


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_every_column_has_a_name_of_its_own_a_type_and_a_meaning(name: str) -> None:
    columns = table_columns(name)
    assert len({column.name for column in columns}) == len(columns)
    lacking = [column.name for column in columns if not column.meaning]
    assert lacking == [], "emulator/analysis/glossary.py says what a field means where its event does not"


def test_the_glossary_explains_no_field_that_does_not_exist() -> None:
    structs: tuple[type[msgspec.Struct], ...] = (
        *EVENT_TYPES,
        *(struct for struct, _ in FILLED.values()),
        Envelope,
        Identity,
        Moment,
    )
    fields = {field for struct in structs for field in struct.__struct_fields__}
    fields |= {f"{struct.__name__}.{field}" for struct in structs for field in struct.__struct_fields__}
    assert MEANINGS.keys() - fields == set()


def test_types_units_and_meanings() -> None:
    columns = columns_of(_Row)
    assert [(column.name, column.spark_type, column.unit) for column in columns] == [
        ("where", "bigint", "offset"),
        ("how", "string", ""),
        ("terms", "array<bigint>", "leader epoch"),
        ("entries", "map<string,string>", ""),
        ("inner", "array<struct<first:bigint,second:string>>", ""),
        ("pairs", "array<array<bigint>>", "leader epoch"),
        ("duration_ms", "double", "ms"),
        ("is_clean", "boolean", ""),
    ]
    assert [column.meaning for column in columns[:3]] == ["a place, which takes two lines to explain", "in `words`", ""]
    assert ddl_of(columns[:2]) == "`where` bigint, `how` string"


def test_what_no_column_can_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="no column holds"):
        columns_of(_Unfit)


def test_tables_have_the_columns_of_their_events() -> None:
    assert [column.name for column in own_columns("power_lost")] == [
        *Envelope.__struct_fields__,
        "cause_id",
        "topic",
        "partition",
        "topic_id",
        "lost_node",
        "lost_incarnation",
        "keep",
        "old_end_offset",
        "new_end_offset",
    ]

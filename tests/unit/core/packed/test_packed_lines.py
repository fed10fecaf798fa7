"""Packed lines are the lines that were packed, in the order in which they were, however a file was cut or altered."""

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laststand.emulator.core import events as e
from laststand.emulator.core.history import Attempt, OperationType, PolledBatch, PollOperation, SendOperation
from laststand.emulator.core.packed.layout import CELL, KINDS, LAYOUTS, VERSION, join_id, split_id
from laststand.emulator.core.packed.reading import (
    LineReader,
    content_end,
    count_lines,
    json_lines,
    text_lines,
    whole_end,
)
from laststand.emulator.core.packed.writing import LinePacker
from laststand.emulator.core.types import CauseId

ENVELOPE = {"run": "r", "node": 1, "incarnation": 0}
EDGES = st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31), 2**32, -(2**63) + 1, -(2**63), 2**63 - 1, 2**63, 2**70])
INTS = st.integers(min_value=0, max_value=1000) | EDGES
IDS = st.sampled_from(["producer-0:17", "x", "", "a-007", "a0", "a-123456789012", "a-1234567890123", "a-٣"]) | st.text()
TEXTS = st.sampled_from(["orders", "AAAA", "", "ü\n"]) | st.text(max_size=100)
NUMBERS = st.lists(INTS, max_size=3).map(tuple)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "cause_id": IDS,
    "operation_id": IDS,
    "committed_isr": NUMBERS,
    "maximal_isr": NUMBERS,
    "joiners": NUMBERS,
    "role": st.sampled_from(e.AppendRole),
    "type": st.sampled_from(OperationType),
    "seek": st.booleans(),
    "topic_id": st.none() | TEXTS,
    "replicas": st.lists(st.builds(e.ReplicaProgress, INTS, st.none() | INTS, st.none() | INTS), max_size=6).map(tuple),
}
OPTIONAL = ("producer_id", "base_offset", "leader_epoch", "error", "high_watermark", "log_start_offset")


def built(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Any struct of a kind; values may be beyond what the field can hold."""
    hints = {name: str(kind.__annotations__.get(name, "str")) for name in kind.__struct_fields__}

    def of(name: str) -> st.SearchStrategy[Any]:
        if name == "attempts":
            return st.lists(built(Attempt), max_size=3).map(tuple)
        if name == "batches":
            return st.lists(built(PolledBatch), max_size=3).map(tuple)
        if name in FIELDS:
            return FIELDS[name]
        is_text = name in ("topic", "error", "process", "phase", "producer", "outcome")
        found = TEXTS if is_text else INTS
        return st.none() | found if name in OPTIONAL and "Polled" not in kind.__name__ else found

    return st.builds(kind, **{name: of(name) for name in hints})


LINES = st.lists(
    st.one_of(
        *(built(kind) for kind in KINDS if issubclass(kind, e.Event)), st.just(e.NodeStopped(cause_id=CauseId("c")))
    ),
    max_size=12,
)
OPERATIONS = st.lists(st.one_of(built(SendOperation), built(PollOperation)), max_size=12)


def text_of(event: msgspec.Struct, number: int) -> bytes:
    place = {**ENVELOPE, "sequence": number, "time_ns": 10 * number}
    return msgspec.json.encode(place)[:-1] + b"," + msgspec.json.encode(event)[1:]


def packed(events: Sequence[msgspec.Struct], *, segment_bytes: int = 1 << 20) -> tuple[bytes, list[bytes]]:
    """A file of events, and their lines."""
    packer = LinePacker(ENVELOPE, segment_bytes=segment_bytes)
    texts = [text_of(event, number) for number, event in enumerate(events)]
    for number, event in enumerate(events):
        packer.add(event, number=number, time_ns=10 * number, text=partial(texts.__getitem__, number))
    return packer.pop(), texts


def moved(number: int) -> e.FollowerHighWatermarkUpdated:
    fields = {"old": 1, "new": 2, "log_end_offset": 3, "leader_epoch": 4, "topic": "orders", "partition": 0}
    return msgspec.convert(
        {"type": "FollowerHighWatermarkUpdated", **fields, "topic_id": "A", "cause_id": f"c-{number}"},
        e.FollowerHighWatermarkUpdated,
    )


@settings(max_examples=60, deadline=None)
@given(LINES, st.sampled_from([64, 500, 1 << 20]), st.integers(min_value=1, max_value=300))
def test_events_come_back_as_they_were(events: list[msgspec.Struct], segment_bytes: int, block: int) -> None:
    content, texts = packed(events, segment_bytes=segment_bytes)
    assert len(content) % CELL == 0
    assert count_lines(content) == len(events)
    reader, found = LineReader(), list[bytes]()
    for begin in range(0, len(content), block):
        found += reader.lines(content[begin : begin + block])
    assert found == texts
    assert reader.rest == b""


@settings(max_examples=40, deadline=None)
@given(OPERATIONS)
def test_operations_come_back_as_they_were(operations: list[SendOperation | PollOperation]) -> None:
    numbered = [msgspec.structs.replace(each, index=number, time_ns=7) for number, each in enumerate(operations)]
    packer = LinePacker({})
    for each in numbered:
        packer.add(each, number=each.index, time_ns=each.time_ns, text=partial(msgspec.json.encode, each))
    assert json_lines(packer.pop()).splitlines() == [msgspec.json.encode(each) for each in numbered]


@given(IDS)
def test_an_id_is_taken_apart_and_put_together(text: str) -> None:
    assert join_id(*split_id(text)) == text


def test_frequent_lines_are_packed_and_others_are_texts() -> None:
    content, texts = packed([moved(0), e.NodeStopped(cause_id=CauseId("c")), moved(1)])
    assert text_lines(content) == texts[1] + b"\n"
    assert LAYOUTS[e.FollowerHighWatermarkUpdated].cells * CELL < len(texts[0]) / 3


def test_wherever_a_file_is_cut_its_whole_lines_are_read() -> None:
    events = [moved(0), e.NodeStopped(cause_id=CauseId("c" * 50)), moved(1), moved(2)]
    content, texts = packed(events, segment_bytes=200)
    for end in range(len(content)):
        found = list(LineReader().lines(content[:end]))
        assert found == texts[: len(found)]
        assert count_lines(content[: whole_end(content[:end])]) == len(found)
        assert (content_end(content[:end]) or 0) == whole_end(content[:end])


@pytest.mark.parametrize("change", [b"\x00", b"\x09", b"\x02", b"\xff", b"{"])
def test_cells_that_are_no_line_are_reported_by_their_place(change: bytes) -> None:
    content, texts = packed([moved(number) for number in range(5)])
    begin = content.index(bytes([KINDS[e.FollowerHighWatermarkUpdated]]), content.index(b"orders")) // CELL * CELL
    begin = next(place for place in range(begin, len(content), CELL) if content[place] == 6)
    found = list(LineReader().lines(content[:begin] + change + content[begin + 1 :]))
    assert found != texts
    assert any(b"are no line" in line for line in found)


def test_a_word_that_is_missing_makes_a_line_none() -> None:
    content, texts = packed([moved(0)])
    first = content.index(b"\x03")
    found = list(LineReader().lines(content[:first] + content[first + CELL :]))
    assert found != texts


def test_the_layout_of_a_version_stays() -> None:
    told = [
        (kind.__name__, layout[1:3], layout.elements and layout.elements[1][1:3]) for kind, layout in LAYOUTS.items()
    ]
    digest = hashlib.sha256(repr(told).encode()).hexdigest()
    assert (VERSION, digest[:16]) == (1, "bc07a123cc986f2c"), "another layout is another version"

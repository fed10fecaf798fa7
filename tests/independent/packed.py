"""Reader of packed files, by ``docs/packed-files.md``: yields the lines of a file as dictionaries."""

import json
import re
import struct
from collections.abc import Iterator

CELL = 32
TEXT, HEADER, WORD = 1, 2, 3

Line = dict[str, object]
Fields = tuple[tuple[int, str, str], ...]

# (offset, struct code, field) by first byte. A field is "name", "name?" (the least integer stands for null),
# "name#" (number of a word), "name@" (position in the segment), "name+" (word and digits of an id), "name*" (count).
EVENTS: dict[int, tuple[str, int, Fields, int, Fields]] = {
    4: (
        "BatchAppended",
        3,
        (
            (1, "q", "time_ns"), (9, "q", "cause_id+"), (17, "q", "base_offset"), (25, "I", "sequence@"),
            (29, "H", "cause_id#"), (33, "q", "last_offset"), (41, "q", "producer_id?"), (49, "i", "leader_epoch"),
            (53, "i", "current_leader_epoch"), (57, "I", "crc"), (61, "H", "topic#"), (65, "i", "record_count"),
            (69, "i", "base_sequence"), (73, "H", "role#"), (75, "h", "producer_epoch"),
        ),
        0,
        (),
    ),
    5: (
        "HighWatermarkAdvanced",
        2,
        (
            (1, "q", "time_ns"), (9, "q", "cause_id+"), (17, "q", "old"), (25, "I", "sequence@"),
            (29, "H", "cause_id#"), (31, "B", "replicas*"), (33, "q", "new"), (41, "q", "log_end_offset"),
            (49, "i", "leader_epoch"), (53, "H", "topic#"), (55, "H", "committed_isr#"), (57, "H", "maximal_isr#"),
            (59, "H", "joiners#"), (61, "h", "effective_min_isr"),
        ),
        1,
        ((1, "q", "log_end_offset?"), (9, "i", "broker_id"), (13, "i", "leader_epoch?")),
    ),
    6: (
        "FollowerHighWatermarkUpdated",
        2,
        (
            (1, "q", "time_ns"), (9, "q", "cause_id+"), (17, "q", "old"), (25, "I", "sequence@"),
            (29, "H", "cause_id#"), (33, "q", "new"), (41, "q", "log_end_offset"), (49, "i", "leader_epoch"),
            (53, "H", "topic#"),
        ),
        0,
        (),
    ),
    7: (
        "ProduceAnswered",
        2,
        (
            (1, "q", "time_ns"), (9, "q", "cause_id+"), (17, "q", "base_offset?"), (25, "I", "sequence@"),
            (29, "H", "cause_id#"), (31, "b", "acks"), (33, "q", "high_watermark"), (41, "i", "record_count"),
            (45, "i", "leader_epoch?"), (49, "H", "topic#"), (51, "H", "error#"), (53, "H", "committed_isr#"),
        ),
        0,
        (),
    ),
    8: (
        "send",
        2,
        (
            (1, "q", "time_ns"), (9, "q", "operation_id+"), (17, "q", "first_record_id"), (25, "I", "index@"),
            (29, "H", "type#"), (31, "b", "acks"), (33, "q", "base_offset?"), (41, "i", "record_count"),
            (45, "H", "process#"), (47, "H", "operation_id#"), (49, "H", "topic#"), (51, "H", "error#"),
            (53, "B", "attempts*"),
        ),
        1,
        (
            (1, "q", "producer_id?"), (9, "i", "node"), (13, "i", "leader_epoch?"), (17, "i", "base_sequence?"),
            (21, "I", "crc"), (25, "h", "producer_epoch?"), (27, "H", "outcome#"),
        ),
    ),
    9: (
        "poll",
        3,
        (
            (1, "q", "time_ns"), (9, "q", "operation_id+"), (17, "q", "position"), (25, "I", "index@"),
            (29, "H", "type#"), (31, "B", "seek"), (33, "q", "high_watermark?"), (41, "q", "log_start_offset?"),
            (49, "i", "node"), (53, "i", "leader_epoch?"), (57, "H", "process#"), (59, "H", "operation_id#"),
            (61, "H", "phase#"), (65, "H", "topic#"), (67, "H", "batches*"), (69, "H", "error#"),
        ),
        2,
        (
            (1, "q", "base_offset"), (9, "q", "last_offset"), (17, "q", "first_record_id"), (25, "i", "leader_epoch"),
            (29, "H", "producer#"), (33, "I", "crc"), (37, "i", "record_count"),
        ),
    ),
}  # fmt: skip
LEAST = {"q": -(1 << 63), "i": -(1 << 31), "h": -(1 << 15)}


def read_packed(data: bytes) -> Iterator[Line]:
    """Yields the lines of a packed file; the last one is left out where the file ends within it."""
    common: Line = {}
    words: list[object] = []
    first = count = 0
    place = 0
    while place + CELL <= len(data):
        begins = data[place]
        if begins in (TEXT, HEADER, WORD):
            end = place + CELL
            while end < len(data) and (data[end] >= CELL or data[end] == 10):
                end += CELL
            text = data[place + 1 : end]
            place = end
            try:
                value = json.loads(text)
            except ValueError:
                return  # torn
            if begins == HEADER:
                common = {key: each for key, each in value.items() if key not in ("version", "first")}
                first, count, words = value["first"], 0, []
            elif begins == WORD:
                words.append(value)
            else:
                count += 1
                yield value
            continue
        kind, cells, fields, element_cells, element_fields = EVENTS[begins]
        line, elements = _values(data, place, fields, words, first)
        place += cells * CELL
        if elements is not None:
            name, number = elements
            found = []
            for _ in range(number):
                if place + element_cells * CELL > len(data):
                    return
                found.append(_values(data, place, element_fields, words, first)[0])
                place += element_cells * CELL
            line[name] = found
        line["f" if kind in ("send", "poll") else "type"] = kind
        count += 1
        yield {**common, **line}


def _values(
    data: bytes, place: int, fields: Fields, words: list[object], first: int
) -> tuple[Line, tuple[str, int] | None]:
    line: Line = {}
    elements = None
    for offset, code, field in fields:
        (value,) = struct.unpack_from(f"<{code}", data, place + offset)
        name, form = re.fullmatch(r"(\w+)([?#@+*]?)", field).groups()  # type: ignore[union-attr]
        if form == "?":
            line[name] = None if value == LEAST[code] else value
        elif form == "#" and name == "topic":
            line["topic"], line["partition"], line["topic_id"] = words[value]
        elif form == "#" and name in ("cause_id", "operation_id"):
            digits = line[name]
            line[name] = f"{words[value]}{'' if digits == -1 else digits}"
        elif form == "#":
            line[name] = words[value]
        elif form == "@":
            line[name] = first + value
        elif form == "*":
            elements = name, value
        else:
            line[name] = bool(value) if name == "seek" else value
    return line, elements

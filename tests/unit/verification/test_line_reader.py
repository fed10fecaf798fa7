"""Lines are decoded in blocks; what a line by itself would be taken for does not depend on that."""

import pytest

from laststand.emulator.verification.facts.run import RunFacts
from laststand.emulator.verification.reading.lines import LineReader

TOO_LARGE = {"MetadataApplied"}
START = b'{"type":"NodeStopped","cause_id":"c","node":1,"incarnation":0,"sequence":0}'
NEXT = b'{"type":"NodeStopped","cause_id":"c","node":1,"incarnation":0,"sequence":1}'


def read(block: bytes) -> tuple[int, int, str | None]:
    """Lines, corrupt ones, and the torn one."""
    reader = LineReader(RunFacts())
    reader.read_events("1-0.jsonl", [block])
    [census] = reader.files
    return census.lines, census.corrupt, census.torn


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (START + b"\n" + NEXT + b"\n", (2, 0, None)),
        (START + b"\n" + NEXT, (2, 0, None)),
        (START + b"\r\n" + NEXT + b"\n", (2, 0, None)),
        (START + b"\n" + NEXT[:20], (1, 0, NEXT[:20].decode())),
        (START + b"\n\n" + NEXT + b"\n", (3, 1, None)),
        (START + b" " + NEXT + b"\n\n", (2, 2, None)),
        (START[:20] + b"\n" + START[20:] + b"\n", (2, 2, None)),
        (START + b"\n\xff\n" + NEXT + b"\n", (3, 1, None)),
        (START + b"\n" + NEXT + b"\n\n", (3, 1, None)),
    ],
)
def test_a_block_counts_as_its_lines_do(block: bytes, expected: tuple[int, int, str | None]) -> None:
    assert read(block) == expected


def test_a_history_s_empty_line_is_corrupt() -> None:
    reader = LineReader(RunFacts())
    reader.read_history("history.jsonl", [b"\n"])
    assert (reader.history.lines, reader.history.corrupt) == (1, 1)


@pytest.mark.parametrize(
    ("number", "refused"),
    [(2**63 - 1, set()), (2**63, TOO_LARGE), (2**64 - 1, TOO_LARGE), (2**64, TOO_LARGE), (-(2**63), set())],
)
def test_an_integer_has_64_bits_with_its_sign(number: int, refused: set[str]) -> None:
    line = b'{"type":"MetadataApplied","cause_id":"\xcf\x80","node":1,"incarnation":0,"sequence":0'
    reader = LineReader(RunFacts())
    reader.read_events("1-0.jsonl", [b'%s,"start_offset":0,"end_offset":%d}\n' % (line, number)])
    [census] = reader.files
    assert (census.lines, census.incomplete) == (1, refused)

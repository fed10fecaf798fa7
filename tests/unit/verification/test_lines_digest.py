"""The digest of a file is the same, whether it is read in one piece or range by range."""

from pathlib import Path

import pytest

from laststand.emulator.verification.reading import digest as lines_digest
from laststand.emulator.verification.reading.digest import FileContent, LinesDigest, digest_range, join_parts

LINE = b'{"type":"NodeStopped"}\n'
SEAL = b'{"type":"FileSealed","lines":1}\n'
CONTENTS = {
    "empty": b"",
    "one line": LINE,
    "only a seal": SEAL,
    "lines": LINE * 40,
    "sealed": LINE * 40 + SEAL,
    "sealed at the end of a part": LINE * 32 + b"{" + b" " * 30 + b"}\n" + SEAL,
    "torn": LINE * 40 + LINE[:9],
    "torn after its seal": LINE * 40 + SEAL + b"{",
    "only a torn line": LINE[:9],
    "goes on after its seal": LINE * 40 + SEAL + LINE,
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_digest, "_PART_BYTES", 64)
    monkeypatch.setattr(lines_digest, "_TAIL_BYTES", 5)


def in_one_piece(content: bytes) -> FileContent:
    digest = LinesDigest()
    digest.add(content)
    return digest.finish()


@pytest.mark.parametrize("range_bytes", [1, 50, 64, 65, 128, 10_000])
@pytest.mark.parametrize("name", CONTENTS)
def test_ranges_add_up(name: str, range_bytes: int, tmp_path: Path) -> None:
    content, path = CONTENTS[name], tmp_path / "file.jsonl"
    path.write_bytes(content)
    ranges = [digest_range(path, begin, begin + range_bytes) for begin in range(0, max(len(content), 1), range_bytes)]
    assert join_parts(ranges) == in_one_piece(content)


def test_any_other_byte_gives_another_digest(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(LINE * 40)
    before = join_parts([digest_range(path, 0, 10_000)])
    path.write_bytes(LINE * 39 + LINE.replace(b"N", b"M"))
    after = join_parts([digest_range(path, 0, 10_000)])
    assert after.lines == before.lines
    assert after.digest != before.digest

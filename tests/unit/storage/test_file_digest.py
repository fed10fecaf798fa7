"""The digest of a file of evidence: by its writer, by the harness and by the oracle, who shares nothing with them."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from laststand.emulator.storage.file_digest import PART_BYTES, FileDigest, content_of, digest_of
from laststand.emulator.verification.reading import digest as lines_digest

SEAL = b'{"type":"FileSealed","lines":1}\n'


def plain(content: bytes) -> str:
    parts = [content[start : start + PART_BYTES] for start in range(0, len(content), PART_BYTES)]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def lines_of(size: int) -> Iterator[bytes]:
    for number in range(size // 100):
        yield b"%099d\n" % number


@pytest.mark.parametrize("size", [0, 100, PART_BYTES - 100, PART_BYTES, PART_BYTES + 100, 3 * PART_BYTES])
def test_a_writer_the_harness_and_the_oracle_agree(size: int, tmp_path: Path) -> None:
    digest, path = FileDigest(), tmp_path / "events.jsonl"
    lines = list(lines_of(size))
    for line in lines:
        digest.update(line)
    content = b"".join(lines)
    path.write_bytes(content)
    assert digest.hexdigest() == plain(content)
    assert content_of(path) == (len(lines), plain(content)) == oracle(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content + SEAL,
        lambda content: content + b'{"torn',
        lambda content: content + SEAL + b'{"torn',
    ],
)
def test_a_seal_and_a_torn_line_do_not_count(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    content = b"".join(lines_of(2 * PART_BYTES))
    path = tmp_path / "events.jsonl"
    path.write_bytes(change(content))
    assert content_of(path) == (content.count(b"\n"), plain(content)) == oracle(path)


def test_a_seal_that_is_not_the_last_line_counts(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(SEAL + b"{}\n")
    assert content_of(path) == (2, plain(SEAL + b"{}\n")) == oracle(path)


def oracle(path: Path) -> lines_digest.FileContent:
    digest = lines_digest.LinesDigest()
    with path.open("rb") as file:
        while block := file.read(PART_BYTES // 3):
            digest.add(block + file.readline())
    return digest.finish()


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, 2 * PART_BYTES + 7])
def test_a_file_that_is_not_of_lines_has_the_digest_of_all_its_bytes(size: int, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"ab\n" * (size // 3) + b"x" * (size % 3))
    assert digest_of(path) == plain(path.read_bytes()) == lines_digest.read_file(path).digest

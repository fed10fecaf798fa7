"""Files that users name: what is opened, what is refused, and that nothing waits without end."""

import os
import threading
from pathlib import Path

import pytest

from laststand.emulator import user_files
from laststand.emulator.user_files import open_file, read_bytes, read_document, read_text


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\r\ntwo\n")
    assert read_bytes(path) == b"one\r\ntwo\n"
    assert read_text(path) == read_document(path) == "one\ntwo\n"
    with open_file(path) as file:
        assert file.readline() == b"one\r\n"


@pytest.mark.parametrize(("path", "kind"), [("/dev/zero", "a device"), ("/dev", "a directory")])
def test_what_is_no_file_is_named(path: str, kind: str) -> None:
    for read in (open_file, read_bytes, read_document):
        with pytest.raises(OSError, match=f"is {kind}; expected a file") as caught:
            read(path)
        assert caught.value.filename == path


def test_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="is a FIFO; expected a file"):
        read_bytes(tmp_path / "fifo")


def test_a_document_comes_through_a_pipe() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"half of ")

    def write_the_rest() -> None:
        os.write(writing, b"a document")
        os.close(writing)

    writer = threading.Thread(target=write_the_rest)
    writer.start()
    assert read_document(f"/dev/fd/{reading}") == "half of a document"
    writer.join()
    os.close(reading)


def test_a_pipe_to_which_nobody_writes_is_no_document(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="is a FIFO to which nobody writes"):
        read_document(tmp_path / "fifo")


def test_a_pipe_in_which_nothing_comes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_files, "PIPE_TIMEOUT_S", 0.0)
    reading, writing = os.pipe()
    with pytest.raises(OSError, match="in which nothing came"):
        read_document(f"/dev/fd/{reading}")
    os.close(reading)
    os.close(writing)

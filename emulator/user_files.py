"""Opens files that a user names, or files in a directory that a user names, without ever blocking.

Such a directory may hold anything under the expected name. Opening a FIFO blocks until a process writes to it, a device
may have no end, and neither is what a user meant: both are refused with a message, as are sockets and directories. The
message is in an ``OSError`` like those of the system, so that one handler reports all of them.

Only documents may also come through a pipe, as in ``laststand run <(sed s/3/5/ mine.yaml)``; a pipe without content is
given up after a time.
"""

import errno
import os
import select
import stat
from pathlib import Path
from typing import BinaryIO, Final

PIPE_TIMEOUT_S: Final = 10.0
"""Longest wait for the next bytes of a pipe."""

_DOCUMENT_BYTES_MAX: Final = 64 << 20
_PIPE_BLOCK_BYTES: Final = 1 << 16
_KINDS: Final = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
}


def open_file(path: Path | str) -> BinaryIO:
    """Opens a regular file for reading.

    Raises:
        OSError: the file is missing, unreadable, or no regular file.
    """
    return os.fdopen(_open(path, pipes=False), "rb")


def read_bytes(path: Path | str) -> bytes:
    """Returns the content of a regular file.

    Raises:
        OSError: as in ``open_file``.
    """
    with open_file(path) as file:
        return file.read()


def read_text(path: Path | str, *, encoding: str = "utf-8") -> str:
    """Returns the content of a regular file, with line ends converted to Python's.

    Raises:
        OSError: as in ``open_file``.
        UnicodeDecodeError: the content is no text.
    """
    return _lines(read_bytes(path).decode(encoding))


def read_document(path: Path | str, *, encoding: str = "utf-8") -> str:
    """Returns the text of a document, which may come through a pipe.

    Raises:
        OSError: as ``open_file``; nothing came through the pipe for ``PIPE_TIMEOUT_S``, or the document is too long.
        UnicodeDecodeError: the content is no text.
    """
    descriptor = _open(path, pipes=True)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            content = _read_pipe(descriptor, path)
        else:
            content = file.read(_DOCUMENT_BYTES_MAX + 1)
    if len(content) > _DOCUMENT_BYTES_MAX:
        raise OSError(errno.EFBIG, f"is longer than {_DOCUMENT_BYTES_MAX >> 20} MiB", str(path))
    return _lines(content.decode(encoding))


def _open(path: Path | str, *, pipes: bool) -> int:
    # To open a device may already do something, so its kind is asked for first.
    _check(os.stat(path).st_mode, path, pipes=pipes)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _check(os.fstat(descriptor).st_mode, path, pipes=pipes)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check(mode: int, path: Path | str, *, pipes: bool) -> None:
    if stat.S_ISREG(mode) or (pipes and stat.S_ISFIFO(mode)):
        return
    kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
    raise OSError(errno.EINVAL, f"is {kind}; expected a file", str(path))


def _read_pipe(descriptor: int, path: Path | str) -> bytes:
    content = bytearray()
    watched = select.poll()
    watched.register(descriptor, select.POLLIN)
    while len(content) <= _DOCUMENT_BYTES_MAX:
        try:
            block = os.read(descriptor, _PIPE_BLOCK_BYTES)
        except BlockingIOError:
            if not watched.poll(PIPE_TIMEOUT_S * 1000):
                reason = f"is a FIFO in which nothing came for {PIPE_TIMEOUT_S:.0f} s"
                raise OSError(errno.EINVAL, reason, str(path)) from None
            continue
        if not block:
            break
        content += block
    if not content:
        raise OSError(errno.EINVAL, "is a FIFO to which nobody writes", str(path))
    return bytes(content)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")

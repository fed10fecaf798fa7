"""Finds out whether a preloaded library sees what a program does to files: from its ELF file, and while it runs.

A static program loads no library, and a Go program bypasses the C library even if it is linked to it. For a script, its
interpreter is checked.
"""

import errno
import os
import shutil
import stat
import struct
from pathlib import Path
from typing import Final

import psutil

from laststand.emulator.core.errors import ConfigError

_ELF: Final = b"\x7fELF"
_SCRIPT: Final = b"#!"
_SCRIPT_DEPTH_MAX: Final = 4
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER: Final = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER: Final = struct.Struct("<IIQQQQIIQQ")
_CLASS_64_LITTLE: Final = b"\x02\x01"
_PT_INTERP: Final = 3
_GO_SECTIONS: Final = frozenset((b".go.buildinfo", b".note.go.buildid"))
_MUSL: Final = b"ld-musl"
_IO_URING: Final = "anon_inode:[io_uring]"


def check_preloadable(program: str) -> None:
    """Checks that a library can be preloaded into a program, and sees its changes of files.

    Args:
        program: a path, or a name that is looked up in ``PATH``.

    Raises:
        ConfigError: the program does not exist, or no library can be preloaded into it.
    """
    found = shutil.which(program)
    if found is None:
        raise ConfigError(
            key="COMMAND", value=program, expected="a program: there is no such file that may be executed"
        )
    path = os.path.realpath(found)
    for _ in range(_SCRIPT_DEPTH_MAX):
        content = _read(path)
        if not content.startswith(_SCRIPT):
            break
        words = content.partition(b"\n")[0][len(_SCRIPT) :].split()
        path = os.path.realpath(os.fsdecode(words[0])) if words else path
    else:
        content = b""
    reason = _reason_against(content) or ("it is set-user-ID" if os.stat(path).st_mode & stat.S_ISUID else None)
    if reason is not None:
        expected = f"a program that writes through the C library, so that what it syncs is seen: {path}: {reason}"
        raise ConfigError(key="COMMAND", value=program, expected=expected)


def reason_not_seen(process: psutil.Process, library: Path) -> str | None:
    """Returns why some of a running process's file operations are missed; ``None`` if none is, or if it has ended."""
    place = Path("/proc") / str(process.pid)
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        name = process.name()
        if str(library) not in (place / "maps").read_text(encoding="utf-8", errors="replace"):
            return f"process {process.pid} ({name}) runs without the library: it is static, or has cleared LD_PRELOAD"
        links = [os.readlink(descriptor) for descriptor in (place / "fd").iterdir() if descriptor.is_symlink()]
    except (OSError, psutil.NoSuchProcess):
        return None
    return f"process {process.pid} ({name}) uses io_uring" if _IO_URING in links else None


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or errno.EIO)
        raise ConfigError(key="COMMAND", value=path, expected=f"a program that can be read ({reason})") from error


def _reason_against(content: bytes) -> str | None:
    """Returns why a program cannot be watched, by its file."""
    if not content.startswith(_ELF) or len(content) < _HEADER.size or content[4:6] != _CLASS_64_LITTLE:
        return "it is no 64-bit ELF program"
    header = _HEADER.unpack_from(content)
    program_at, section_at, program_size, programs, section_size, sections, names = header[5], header[6], *header[9:14]
    try:
        loader = next(
            (
                content[entry[2] : entry[2] + entry[5]]
                for entry in (
                    _PROGRAM_HEADER.unpack_from(content, program_at + n * program_size) for n in range(programs)
                )
                if entry[0] == _PT_INTERP
            ),
            None,
        )
        table = [_SECTION_HEADER.unpack_from(content, section_at + n * section_size) for n in range(sections)]
    except struct.error:
        return "it is no whole ELF program"
    name_at = table[names][4] if names < len(table) else 0
    found = {content[name_at + each[0] :].partition(b"\0")[0] for each in table} if len(table) < 100 else set()
    if found & _GO_SECTIONS:
        return "it is a Go program, which calls the kernel itself"
    if loader is None:
        return "it is linked statically"
    return "it is linked with musl, not with glibc" if _MUSL in loader else None

"""TLS handshakes that fail at gRPC, which reports them only on standard error, with the reason but without the address.

::

    I1127 11:42:19.587903 18201 ssl_transport_security.cc:2563] Handshake failed with error SSL_ERROR_SSL:
        error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: certificate has expired

So standard error's file descriptor becomes a pipe that this process reads itself: such lines become calls, and all
others are written to the original standard error, except those about the name that a caller asks for (SNI): there is
one certificate, whatever the name. Python's own lines are written there directly. The pipe never blocks: lines written
while it is full, because a client fails very often, are dropped, and so is gRPC's output at the moment in which it
aborts the process.
"""

import asyncio
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_STANDARD_ERROR: Final = 2
_READ_BYTES: Final = 65_536
_FAILED: Final = re.compile(
    rb"ssl_transport_security\S+ Handshake failed with error (?:.*OPENSSL_internal:)?(\w+): ?(.*)"
)
_NOT_VERIFIED: Final = b"CERTIFICATE_VERIFY_FAILED"
_OTHER_NAME: Final = b"No match found for server name"


def watch_handshakes(on_failure: Callable[[str], None]) -> None:
    """Reports each handshake of this process that fails from now on, until the event loop ends.

    Args:
        on_failure: called with the reason, on the event loop.
    """
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    target = os.dup(_STANDARD_ERROR)
    os.dup2(writing, _STANDARD_ERROR)
    os.close(writing)
    sys.stderr = open(target, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    lines = _Lines(target, on_failure)
    asyncio.get_running_loop().add_reader(reading, lambda: lines.feed(os.read(reading, _READ_BYTES)))


class _Lines:
    """Sorts the lines of standard error; an incomplete line waits."""

    def __init__(self, target: int, on_failure: Callable[[str], None]) -> None:
        self._target = target
        self._on_failure = on_failure
        self._begun = b""

    def feed(self, content: bytes) -> None:
        *lines, self._begun = (self._begun + content).split(b"\n")
        for line in lines:
            reason = failure_in(line)
            if reason is not None:
                self._on_failure(reason)
            elif _OTHER_NAME not in line:
                with suppress(OSError):  # nobody reads it any more, or its disk is full
                    os.write(self._target, line + b"\n")


def failure_in(line: bytes) -> str | None:
    """Returns the reason of a failed handshake, if a line of standard error is about one."""
    found = _FAILED.search(line)
    if found is None:
        return None
    reason = found[2] if found[1] == _NOT_VERIFIED else found[1].lower().replace(b"_", b" ")
    return reason.decode(errors="replace")

"""Lines that gRPC prints about handshakes that fail become calls; all others stay on standard error."""

import subprocess
import sys

import pytest

from laststand.emulator.rpc.handshake_failures import failure_in

EXPIRED = (
    b"I1127 11:42:19.587903   18201 ssl_transport_security.cc:2563] Handshake failed with error SSL_ERROR_SSL: "
    b"error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: certificate has expired"
)

PROGRAM = f"""
import asyncio, os, sys
from laststand.emulator.rpc.handshake_failures import watch_handshakes

async def main():
    found = asyncio.Queue()
    watch_handshakes(found.put_nowait)
    os.write(2, {EXPIRED[:50]!r})
    os.write(2, {EXPIRED[50:]!r} + b"\\nNo match found for server name: controller.\\nanother line\\n")
    print(await found.get())
    print("of Python", file=sys.stderr)
    for _ in range(10_000):
        try:
            os.write(2, {EXPIRED!r} + b"\\n")
        except BlockingIOError:
            print("full")
            break
    await found.get()

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (EXPIRED, "certificate has expired"),
        (
            b"I1127 11:42:19 1 ssl_transport_security.cc:2563] Handshake failed with error SSL_ERROR_SSL: "
            b"error:100000c0:SSL routines:OPENSSL_internal:PEER_DID_NOT_RETURN_A_CERTIFICATE: Invalid context",
            "peer did not return a certificate",
        ),
        (
            b"I1127 11:42:19 1 ssl_transport_security.cc:9] Handshake failed with error SSL_ERROR_SYSCALL: ",
            "ssl error syscall",
        ),
        (b"W1127 11:42:20.067860   18206 log.cc:102] Handshake failed", None),
    ],
)
def test_the_reason_is_that_of_the_line(line: bytes, reason: str | None) -> None:
    assert failure_in(line) == reason


def test_standard_error_is_sorted_and_a_writer_never_waits() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["certificate has expired", "full"]
    assert sorted(done.stderr.splitlines()) == ["another line", "of Python"]

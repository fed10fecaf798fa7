"""A first start of a ZooKeeper server, as a trial, and an archive of its classes that speeds up later starts.

The archive is kept in the user's cache (application class data sharing, JEP 350), by Java and jars; if it exists, or
the cache cannot be written, no trial is made.
"""

import hashlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.cluster.ports import LOOPBACK, ReservedPort
from laststand.emulator.cluster.zookeeper_program import ZooKeeperProgram, server_settings
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.parent_death import die_with_parent

_SERVES_WITHIN_S: Final = 60.0
_ENDS_WITHIN_S: Final = 60.0
_ASK_AGAIN_S: Final = 0.05
_SESSION_TIMEOUT_MS: Final = 1000


class ZooKeeperTrialError(ConfigError):
    """A server did not come up.

    Args:
        jars: the jars that the server was started from.
        reason: its output.
    """

    def __init__(self, *, jars: str, reason: str) -> None:
        super().__init__(key="ZooKeeper", value=jars, expected="a server that comes up")
        self.args = (f"the ZooKeeper server in {jars} does not come up: {reason}",)


def tried(program: ZooKeeperProgram) -> ZooKeeperProgram:
    """Returns a program that has come up once, with the archive of its classes.

    Raises:
        ZooKeeperTrialError: the server does not start.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "laststand"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        archive = cache / f"zookeeper-{_identity(program)}.jsa"
        if not archive.exists():
            with tempfile.TemporaryDirectory(prefix="zookeeper-", dir=cache) as scratch:
                _try(program, Path(scratch), archive)
    except OSError:
        return program
    return msgspec.structs.replace(program, class_archive=archive)


def _identity(program: ZooKeeperProgram) -> str:
    """Returns the identity of an archive: a JVM uses it only with the jars and the Java that made it."""
    files = (program.java.resolve(), *map(Path, program.class_path.split(os.pathsep)))
    known = "\n".join(f"{file} {file.stat().st_mtime_ns}" for file in files)
    return hashlib.sha256(known.encode()).hexdigest()[:12]


def _try(program: ZooKeeperProgram, scratch: Path, archive: Path) -> None:
    port = ReservedPort()
    port.lend()
    settings, made, said = scratch / "zoo.cfg", scratch / "classes.jsa", scratch / "node.log"
    data = scratch / "data"
    data.mkdir()
    settings.write_text(
        server_settings(data=data, host=LOOPBACK, port=port.number, session_timeout_ms=_SESSION_TIMEOUT_MS)
    )
    command = program.command(settings, options=(f"-XX:ArchiveClassesAtExit={made}", "-Xlog:disable"))
    with said.open("wb") as log:
        server = subprocess.Popen(
            die_with_parent(command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
        )
    try:
        serves = _await_server(server, port.number)
        server.send_signal(signal.SIGTERM)
        server.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        serves = False
    finally:
        server.kill()
        server.wait()
        port.close()
    if not serves:
        lines = said.read_text(errors="replace").strip().splitlines() or ["it says nothing"]
        jars = str(Path(program.class_path.partition(os.pathsep)[0]).parent)
        raise ZooKeeperTrialError(jars=jars, reason=lines[-1].strip())
    if made.exists():
        made.replace(archive)


def _await_server(server: "subprocess.Popen[bytes]", port: int) -> bool:
    deadline = time.monotonic() + _SERVES_WITHIN_S
    while time.monotonic() < deadline and server.poll() is None:
        if _serves(port):
            return True
        time.sleep(_ASK_AGAIN_S)
    return False


def _serves(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=_ASK_AGAIN_S) as connection:
            connection.settimeout(1.0)
            connection.sendall(b"srvr")
            return b"Zxid:" in connection.recv(4096)
    except OSError:
        return False

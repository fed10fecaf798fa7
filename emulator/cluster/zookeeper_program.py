"""ZooKeeper's own server, as a program on this machine: from the jars in PySpark's wheel, or in a folder of a user."""

import importlib.util
import os
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.errors import MissingToolError
from laststand.emulator.core.properties import NodeProperties

FOLDER_VARIABLE: Final = "LASTSTAND_ZOOKEEPER"
"""Names a folder with ZooKeeper's jars: a distribution, or where a system package has put them."""

_JARS: Final = ("zookeeper", "zookeeper-jute", "metrics-core", "slf4j-api", "snappy-java")
_MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

_JVM_OPTIONS: Final = (
    "-Xms16m",
    "-Xmx64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Dzookeeper.preAllocSize=0",  # a log is as long as what was written, and the sync ledger knows lengths
    "-Dzookeeper.snapCount=10000000",
    "-Dzookeeper.snapshot.trust.empty=true",
)
"""A small heap and a quick start; one log file for each process of the server, so that nothing is purged.

So the logs hold everything from the first transaction on, and a server needs no snapshot: the one that it makes when it
starts is not synced, so that a power loss takes it, and without trust in the logs alone it would not start any more.
"""


class ZooKeeperProgram(msgspec.Struct, frozen=True, kw_only=True):
    """The program that starts a server.

    Attributes:
        java: the program.
        class_path: jars of ZooKeeper and its dependencies.
        class_archive: archive of the classes that it loads; ``None`` for none.
        sync_shim: the library that records its syncs; ``None`` if it will not lose power.
    """

    java: Path
    class_path: str
    class_archive: Path | None = None
    sync_shim: Path | None = None

    def command(self, configuration: Path, *, options: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Returns the command line of a server with this ``zoo.cfg``.

        Args:
            configuration: the file.
            options: of the JVM, in addition to the usual ones.
        """
        archive: tuple[str, ...] = ()
        if self.class_archive is not None:
            archive = (f"-XX:SharedArchiveFile={self.class_archive}", "-Xshare:auto", "-Xlog:disable")
        return (
            *(str(self.java), "-cp", self.class_path),
            *(*_JVM_OPTIONS, *archive, *options),
            *(_MAIN, str(configuration)),
        )


def records_syncs(program: ZooKeeperProgram | None) -> bool:
    """Returns whether the server's syncs are recorded, so that it may lose power; ``None`` for a foreign server."""
    return program is not None and program.sync_shim is not None


def find_zookeeper(java: Path) -> ZooKeeperProgram:
    """Returns the server in the folder that ``LASTSTAND_ZOOKEEPER`` names, or else in PySpark's wheel.

    Raises:
        MissingToolError: the folder holds no ZooKeeper, or PySpark is not installed.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    folder = _wheels_jars() if not named else Path(named)
    if (folder / "lib").is_dir():
        folder /= "lib"  # of a distribution
    jars = [sorted([*folder.glob(f"{name}.jar"), *folder.glob(f"{name}-[0-9]*.jar")]) for name in _JARS]
    if not all(jars):
        missing = ", ".join(f"{name}.jar" for name, found in zip(_JARS, jars, strict=True) if not found)
        raise MissingToolError(tool="ZooKeeper", expected=f"{missing} in {folder}")
    return ZooKeeperProgram(java=java, class_path=os.pathsep.join(str(found[0]) for found in jars))


def _wheels_jars() -> Path:
    wheel = importlib.util.find_spec("pyspark")
    if wheel is None or wheel.origin is None:
        raise MissingToolError(
            tool="ZooKeeper", expected="PySpark, which brings it: pip install 'laststand[verify]', or make setup"
        )
    return Path(wheel.origin).parent / "jars"


def session_refusal(session_timeout_ms: int) -> str | None:
    """Returns why no server offers such a session timeout, or ``None``. ZooKeeper requires at least two ticks."""
    if session_timeout_ms >= _SESSION_TIMEOUT_MS_MIN:
        return None
    return f"a ZooKeeper server gives no session of {session_timeout_ms} ms, only {_SESSION_TIMEOUT_MS_MIN} ms or more"


def property_refusals(properties: NodeProperties) -> list[str]:
    """Returns the properties that processes with ZooKeeper cannot have, each with its reason."""
    reason = session_refusal(properties.broker_session_timeout_ms)
    refused = [] if reason is None else [f"broker.session.timeout.ms: {reason}"]
    if properties.authorizer_class_name:
        refused.append("authorizer.class.name: clusters with ZooKeeper have no StandardAuthorizer")
    if properties.has_tls_between_nodes:
        refused.append("security.inter.broker.protocol: the ZooKeeper server speaks no TLS here")
    return refused


def server_settings(*, data: Path, host: str, port: int, session_timeout_ms: int) -> str:
    """Returns the content of ``zoo.cfg``.

    Args:
        data: directory of the tree and the transaction log.
        host: interface to listen on.
        port: port to listen on.
        session_timeout_ms: of the clients. Sessions expire at ticks, so a tick is a fraction of it.
    """
    tick_ms = min(_TICK_MS_MAX, max(_TICK_MS_MIN, session_timeout_ms // _TICKS_PER_SESSION))
    settings = {
        "tickTime": tick_ms,
        "minSessionTimeout": 2 * tick_ms,
        "maxSessionTimeout": max(_SESSION_TIMEOUT_MS_MAX, session_timeout_ms),
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": host,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


_TICKS_PER_SESSION: Final = 10
_TICK_MS_MIN: Final = 50
_TICK_MS_MAX: Final = 500
_SESSION_TIMEOUT_MS_MIN: Final = 2 * _TICK_MS_MIN
_SESSION_TIMEOUT_MS_MAX: Final = 600_000

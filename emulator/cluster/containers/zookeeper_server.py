"""``python -m laststand.emulator.cluster.containers.zookeeper_server [zoo.cfg]``: runs a container's ZooKeeper server.

The image has Java, which ``JAVA_HOME`` names, and ZooKeeper's jars in PySpark. A server in a user's compose project is
configured by its environment (``laststand.emulator.node.environment``), a server that a harness starts by a file.
"""

import os
import sys
from pathlib import Path
from typing import Final

from laststand.emulator.cluster.zookeeper_program import find_zookeeper, server_settings, session_refusal
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.node.environment import EVERY_INTERFACE, server_from_environment
from laststand.emulator.zookeeper.transaction_log import LOG_FOLDER

MODULE: Final = "laststand.emulator.cluster.containers.zookeeper_server"

_EXIT_CONFIG: Final = 254


def main() -> int:
    """Replaces this process by the server; returns an exit code if that is impossible."""
    try:
        configuration = Path(sys.argv[1]) if len(sys.argv) > 1 else _configured()
        command = find_zookeeper(Path(os.environ["JAVA_HOME"], "bin/java")).command(configuration)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return _EXIT_CONFIG
    os.execv(command[0], command)


def _configured() -> Path:
    """Writes ``zoo.cfg`` as the environment says, and returns its path."""
    config = server_from_environment(os.environ)
    refused = session_refusal(config.session_timeout_ms)
    if refused is not None:
        value = str(config.session_timeout_ms)
        raise ConfigError(key="broker.session.timeout.ms", value=value, expected=f"a longer time: {refused}")
    data = config.directory / "data"
    (data / LOG_FOLDER).mkdir(parents=True, exist_ok=True)
    path = config.directory / "zoo.cfg"
    path.write_text(
        server_settings(
            data=data, host=EVERY_INTERFACE, port=config.port, session_timeout_ms=config.session_timeout_ms
        ),
        encoding="utf-8",
    )
    return path


if __name__ == "__main__":
    sys.exit(main())

"""Finds out whether a controller exists, for a broker in a container that another party starts.

A project whose era and services do not belong together has no container under the controller's name, and its brokers
would wait without end. The name of a container is known on its network from its start to its end, so a name that stays
unknown is distinguished from a controller that needs time.
"""

import socket
import time
from collections.abc import Mapping
from typing import Final

from laststand.emulator.core.eras import is_zookeeper_era
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.switches import DEFAULT_ERA
from laststand.emulator.node.environment import CONTROLLER_ADDRESS, PREFIX

_UNKNOWN_FOR_S: Final = 6.0
"""Time for which a name may be unknown: containers of a project start one after another."""

_CONNECT_TIMEOUT_S: Final = 1.0
_LOOK_INTERVAL_S: Final = 0.1


def await_controller(environment: Mapping[str, str], *, unknown_for_s: float = _UNKNOWN_FOR_S) -> None:
    """Returns once the controller's own address accepts connections; at once if the environment names none.

    Args:
        environment: of this process.
        unknown_for_s: for how many seconds on end its host may be unknown.

    Raises:
        ConfigError: the host stays unknown, or the text is not an address.
    """
    address = environment.get(PREFIX + CONTROLLER_ADDRESS)
    if not address:
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(key=PREFIX + CONTROLLER_ADDRESS, value=address, expected="HOST:PORT")
    known_s = time.monotonic()
    while True:
        try:
            socket.create_connection((host, int(port)), _CONNECT_TIMEOUT_S).close()
        except socket.gaierror:
            if time.monotonic() - known_s > unknown_for_s:
                expected = f"a host that is up: {_whose_place(environment.get(f'{PREFIX}ERA') or DEFAULT_ERA)}"
                raise ConfigError(key=PREFIX + CONTROLLER_ADDRESS, value=address, expected=expected) from None
        except OSError:  # it is there, and does not listen yet
            known_s = time.monotonic()
        else:
            return
        time.sleep(_LOOK_INTERVAL_S)


def _whose_place(era: str) -> str:
    if is_zookeeper_era(era):
        return (
            f"in era {era} that of a ZooKeeper server, by docker compose --profile zookeeper up --wait "
            "--scale controller=0"
        )
    return f"in era {era} that of the service `controller`, by docker compose up --wait"

"""A broker of a composed project tells a controller that needs time from one that nobody will start."""

import socket

import pytest

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.node.controller_host import await_controller


def variables(address: str, *, era: str = "kafka-3.9-zk") -> dict[str, str]:
    return {"LASTSTAND_CONTROLLER_ADDRESS": address, "LASTSTAND_ERA": era}


def test_a_listening_controller_is_reached_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await_controller(variables(f"127.0.0.1:{listener.getsockname()[1]}"), unknown_for_s=0)
    await_controller({})


def test_a_host_that_does_not_listen_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = iter((socket.gaierror(), ConnectionRefusedError(), TimeoutError(), socket.gaierror(), None))

    def dial(_address: tuple[str, int], _timeout_s: float) -> socket.socket:
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome
        return socket.socket()

    monkeypatch.setattr(socket, "create_connection", dial)
    await_controller(variables("controller:9092"), unknown_for_s=5)
    assert next(outcomes, "all dialled") == "all dialled"


@pytest.mark.parametrize(
    ("era", "advice"),
    [
        ("kafka-3.9-zk", "in era kafka-3.9-zk that of a ZooKeeper server, by docker compose --profile zookeeper"),
        ("kip-966", "in era kip-966 that of the service `controller`"),
        ("", "in era kip-966 that of the service `controller`"),
    ],
)
def test_a_host_that_stays_unknown_is_reported(era: str, advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def dial(_address: tuple[str, int], _timeout_s: float) -> socket.socket:
        raise socket.gaierror

    monkeypatch.setattr(socket, "create_connection", dial)
    with pytest.raises(ConfigError, match="LASTSTAND_CONTROLLER_ADDRESS=controller:9092 is not allowed") as told:
        await_controller(variables("controller:9092", era=era), unknown_for_s=0.05)
    assert advice in str(told.value)


def test_an_address_has_a_host_and_a_port() -> None:
    with pytest.raises(ConfigError, match="expected HOST:PORT"):
        await_controller(variables("controller"))

"""Output of ``up`` about a cluster that serves."""

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from laststand.chaos.standing.order import StandingOrder
from laststand.cli.commands.up import kafka_ports_from
from laststand.cli.output.output import Output
from laststand.cli.program.user_error import UserError
from laststand.cli.standing import launching
from laststand.emulator.cluster.ports import ReservedPort

APP = ("127.0.0.1:9092", "127.0.0.1:9093")
SPARK = ("127.0.0.1:9094", "127.0.0.1:9095")


@pytest.mark.parametrize("servers", [{}, {"app": APP, "spark": SPARK}], ids=["without", "with"])
def test_it_says_what_can_connect_to_the_addresses(
    servers: dict[str, tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    nodes = [SimpleNamespace(role="broker", address="127.0.0.1:19092")]
    report = SimpleNamespace(zookeeper=None, supervisor_pid=7, nodes=nodes, view=None, bootstrap_servers=servers)
    monkeypatch.setattr("laststand.chaos.standing.launch.launch", lambda _: 7)
    monkeypatch.setattr("laststand.chaos.standing.names.register", lambda _: None)
    monkeypatch.setattr(launching, "status_of", lambda _: report)
    order = cast(StandingOrder, cast(Any, SimpleNamespace(path=tmp_path, brokers=1, controllers=1, era="kip-966")))
    launching.launch_and_report(order, output=Output.TEXT)
    said = capsys.readouterr().out
    assert "bootstrap:     127.0.0.1:19092\n" in said
    assert "for Kafka's clients, use up --kafka" in said
    pasted = [line for line in said.splitlines() if line.startswith("bootstrap.servers=")]
    assert pasted == [f"bootstrap.servers={','.join(addresses)}" for addresses in servers.values()]
    assert all(f"client {name} of Kafka" in said for name in servers)


def test_clients_of_kafka_get_the_ports_of_a_fixed_one_in_turn() -> None:
    for _ in range(20):  # what other tests start may have one of the ports after the first
        first = ReservedPort()
        first.close()
        with contextlib.suppress(UserError):
            ports = kafka_ports_from(first.number, ("app", "spark"), brokers=2)
            break
    assert ports == {"app": {0: first.number, 1: first.number + 1}, "spark": {0: first.number + 2, 1: first.number + 3}}


def test_a_fixed_port_that_is_in_use_is_refused() -> None:
    taken = ReservedPort()
    with pytest.raises(UserError, match=f"--kafka-port {taken.number}: {taken.number} is in use"):
        kafka_ports_from(taken.number, ("app",), brokers=1)
    taken.close()


def test_fixed_ports_end_at_the_last_one() -> None:
    with pytest.raises(UserError, match="2 ports from there on go beyond 65535"):
        kafka_ports_from(65535, ("app",), brokers=2)

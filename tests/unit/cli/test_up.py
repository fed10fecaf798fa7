"""Output of ``up`` about a cluster that serves."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from laststand.chaos.standing.order import StandingOrder
from laststand.cli.output.output import Output
from laststand.cli.standing import launching


@pytest.mark.parametrize("servers", [(), ("127.0.0.1:9092", "127.0.0.1:9093")], ids=["without", "with"])
def test_it_says_what_can_connect_to_the_addresses(
    servers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    nodes = [SimpleNamespace(role="broker", address="127.0.0.1:19092")]
    report = SimpleNamespace(zookeeper=None, supervisor_pid=7, nodes=nodes, view=None, bootstrap_servers=servers)
    monkeypatch.setattr("laststand.chaos.standing.launch.launch", lambda _: 7)
    monkeypatch.setattr("laststand.chaos.standing.names.register", lambda _: None)
    monkeypatch.setattr(launching, "status_of", lambda _: report)
    order = cast(StandingOrder, cast(Any, SimpleNamespace(path=tmp_path, brokers=1, era="kip-966")))
    launching.launch_and_report(order, output=Output.TEXT)
    said = capsys.readouterr().out
    assert "bootstrap:     127.0.0.1:19092\n" in said
    assert "for Kafka's clients, use up --kafka" in said
    assert ("bootstrap.servers=127.0.0.1:9092,127.0.0.1:9093\n" in said) is bool(servers)

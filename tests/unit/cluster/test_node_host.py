"""A host that cannot be opened leaves no secret of the cluster behind."""

from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import msgspec
import pytest

from laststand.emulator.cluster.containers import attached_host
from laststand.emulator.cluster.containers.attached_host import AttachedHost
from laststand.emulator.cluster.containers.engine import EngineError
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.node_host import LocalHost
from laststand.emulator.cluster.ports import ReservedPort
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core.eras import era_rules
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.properties import TLS_BETWEEN_NODES
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.rpc.authority import certify
from laststand.emulator.rpc.run_token import RunToken


@pytest.fixture
def layout(tmp_path: Path) -> ClusterLayout:
    return ClusterLayout(
        run="run",
        directory=tmp_path,
        controller_ids=(NodeId(100),),
        broker_ids=(BrokerId(NodeId(0)),),
        switches=era_rules("kip-966"),
        properties=tuple(TLS_BETWEEN_NODES.items()),
        toxiproxy=None,
    )


async def test_processes_whose_port_is_taken(layout: ClusterLayout) -> None:
    taken = ReservedPort()
    ports = {0: taken.number}
    with pytest.raises(ConfigError, match="a free one"):
        await LocalHost(Supervisor()).open(
            msgspec.structs.replace(layout, ports=ports),
            on_end=lambda _: None,
        )
    taken.close()
    assert list(layout.directory.iterdir()) == []


async def test_containers_that_do_not_answer(layout: ClusterLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_halfway(folder: Path) -> NoReturn:
        certify(folder, ())
        raise EngineError(what="copy", reason="gone")

    project = SimpleNamespace(token=RunToken.draw, copy_authority=fail_halfway)
    monkeypatch.setattr(attached_host, "connect", lambda: None)
    monkeypatch.setattr(attached_host, "Project", lambda *_: project)
    (layout.directory / "volume").mkdir()
    (layout.directory / "events").symlink_to("volume")
    for _ in range(2):  # the second time meets no lock of the first
        with pytest.raises(EngineError, match="gone"):
            await AttachedHost("project").open(layout, on_end=lambda _: None)
        assert {path.name for path in layout.directory.rglob("*")} == {"events", "volume"}

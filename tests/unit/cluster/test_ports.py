"""Ports that are chosen for nodes and for clients."""

from pathlib import Path

import pytest

from laststand.emulator.cluster import ports
from laststand.emulator.cluster.ports import ReservedPort, is_free


def _ephemeral_range(path: Path = Path("/proc/sys/net/ipv4/ip_local_port_range")) -> range:
    lowest, highest = map(int, path.read_text(encoding="ascii").split())
    return range(lowest, highest + 1)


def test_no_outgoing_connection_is_given_a_port_that_was_chosen() -> None:
    reserved = [ReservedPort() for _ in range(50)]
    assert len({port.number for port in reserved}) == len(reserved)
    assert not {port.number for port in reserved} & set(_ephemeral_range())
    assert not any(is_free(port.number) for port in reserved)
    for port in reserved:
        port.close()


@pytest.mark.parametrize("content", [None, "wide", "1 65535"])
def test_the_kernel_chooses_where_its_range_is_not_known_or_leaves_nothing(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ip_local_port_range"
    if content is not None:
        path.write_text(content, encoding="ascii")
    monkeypatch.setattr(ports, "_EPHEMERAL_RANGE", path)
    ports._lasting_ports.cache_clear()
    try:
        port = ReservedPort()
        assert port.number in _ephemeral_range()
        port.close()
    finally:
        ports._lasting_ports.cache_clear()

"""Deeds on containers: the executors are those of processes, so one of each way to reach a container is played."""

from pathlib import Path

import docker
import pytest

from chaos.process.faults import execute
from emulator.cluster.containers.container_host import ContainerHost
from emulator.cluster.containers.images import TOXIPROXY_PROGRAM
from emulator.cluster.containers.labels import RUN
from tests.cluster.fault_targets import fault_target
from tests.cluster.test_faults import FAULTS

pytestmark = pytest.mark.docker


@pytest.mark.timeout(600)
async def test_each_fault_bites_once_and_is_mended_once(host: ContainerHost, tmp_path: Path) -> None:
    async with fault_target(tmp_path, host=host, toxiproxy=TOXIPROXY_PROGRAM) as target:
        for name, fault, repair in FAULTS:
            assert not (await execute(target, repair)).took_effect, f"{name}: nothing is broken yet"
            assert (await execute(target, fault)).bit, name
            assert not (await execute(target, fault)).bit, f"{name}: it is broken already"
            assert (await execute(target, repair)).bit, name
    assert containers() == []


def containers() -> list[str]:
    client = docker.from_env()
    try:
        return [each.name or "" for each in client.containers.list(all=True, filters={"label": f"{RUN}=test"})]
    finally:
        client.close()

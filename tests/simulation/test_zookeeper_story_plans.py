"""Plays every plan of ``zookeeper_stories`` in each ZooKeeper era, and compares what comes of it with what it says.

``# kafka-2.5-zk kafka-2.6-zk: leader=1 isr=(1,2) logs=(1,2,3) acked=1; valid, 0 acks=all records lost`` says so of two
eras: who leads after the last action, before anything is healed, and with which ISR; which brokers have a log of the
partition; how many batches were acknowledged with acks=all; who knows no better; and, after ``;``, the verdict once
all is healed.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.run.simulation import Simulation

PLANS = sorted((Path(__file__).parent / "zookeeper_stories").glob("*.txt"))
ORDERS = TopicPartition("orders", 0)


def outcome(text: str, era: str) -> str:
    """Plays a plan in an era; returns what comes of it."""
    plan = parse_plan(re.sub(r"era=\S+", f"era={era}", text))
    simulation = Simulation(plan)
    simulation.begin()
    assert all(simulation.play(action) for action in plan.actions)
    cluster = simulation.cluster
    state = cluster.state(ORDERS)
    words = ["deleted"] if state is None else [f"leader={state.leader}", f"isr=({','.join(map(str, state.isr))})"]
    logs = ",".join(str(broker_id) for broker_id, node in cluster.nodes.items() if ORDERS in node.disk.logs)
    words += [f"logs=({logs})", f"acked={simulation.oracle.tally.acks}"]
    if state is not None:
        words += _behind(cluster, state)
    simulation.finish()
    assert not simulation.findings()
    return f"{' '.join(words)}; {simulation.judgement()}"


def _behind(cluster: SimulatedCluster, state: PartitionState) -> Iterator[str]:
    for broker_id, node in cluster.nodes.items():
        partition = None if node.broker is None else node.broker.partition(ORDERS)
        if partition is None:
            continue
        if partition.leader != state.leader:
            yield f"{broker_id}-follows={partition.leader}"
        elif partition.is_leader and partition.partition_epoch != state.partition_epoch:
            yield f"{broker_id}-knows-version={partition.partition_epoch}/{state.partition_epoch}"


@pytest.mark.parametrize("era", ZOOKEEPER_ERAS)
@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_a_story_comes_to_what_it_says(file: Path, era: str) -> None:
    text = file.read_text()
    said = dict(re.findall(r"^# ((?:k\S+-zk ?)+): (.*)$", text, re.MULTILINE))
    (expected,) = [what for eras, what in said.items() if era in eras.split()]
    assert outcome(text, era) == expected

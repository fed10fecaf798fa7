"""Turns a plan into a scenario: plays it in the simulator, and makes barriers of what it sees there.

Every action becomes its steps (``action_steps``). Where the plan lets time pass, the scenario waits for what then was
different: leaders, ISRs and ELRs, which brokers are fenced, how many records were acknowledged, where each log ends.
Times are ``SCALE`` times those of the simulator, as processes on one machine need longer than a millisecond for a
message. The producers have the names that they have in the simulator, so that a record has one name on both.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import yaml

from chaos.plans.action_steps import PRODUCER as PRODUCER_OF
from chaos.plans.action_steps import NotExpressible, steps_of
from chaos.plans.patience import Essence, PatientPlan, make_patient
from emulator.client.counters import Counters
from emulator.core.client.steps import SendRecorded
from emulator.core.image import PartitionState
from emulator.core.types import Acks, TopicPartition
from emulator.simulator.actions import Wait, format_action
from emulator.simulator.cluster import SimulatedCluster
from emulator.simulator.journal import Journal
from emulator.simulator.plan import PROPERTIES, Plan
from emulator.simulator.run_writer import PRODUCERS
from emulator.simulator.simulation import CONSUMER, PRODUCER, Simulation

SCALE: Final = 5
"""How much longer everything takes on processes."""

_ACKS: Final[Mapping[Acks, str | int]] = {Acks.ALL: "all", Acks.LEADER: 1, Acks.NONE: 0}


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """Something of a plan that processes cannot be made to do: what, and why."""

    what: str
    why: str


def missing_actions(plan: Plan) -> tuple[Missing, ...]:
    """Returns the plan's actions that are no steps of a scenario, in order, each text once."""
    missing: dict[str, Missing] = {}
    for action in plan.actions:
        try:
            steps_of(action)
        except NotExpressible as reason:
            what = format_action(action)
            missing.setdefault(what, Missing(what=what, why=str(reason)))
    return tuple(missing.values())


def patient_or_missing(plan: Plan) -> PatientPlan | tuple[Missing, ...]:
    """Returns the plan as it can be played with barriers, or what stands against that."""
    missing = missing_actions(plan)
    if missing:
        return missing
    patient = make_patient(plan)
    if patient.hurried:
        return tuple(
            Missing(what=f"the time that passes {place}", why="the result depends on it, and a barrier waits longer")
            for place in patient.hurried
        )
    return patient


def scenario_of(patient: PatientPlan, *, name: str) -> str:
    """Returns a patient plan as the text of a scenario file, which expects what the plan came to in the simulator.

    Raises:
        NotExpressible: ``missing_actions`` names what.
    """
    plan = patient.plan
    document = {
        "name": name,
        "source": "a plan of the simulator",
        "cluster": {"brokers": plan.brokers, "properties": _properties({**PROPERTIES, **dict(plan.properties)})},
        "topics": [
            {"name": topic.name, "replicas": [list(each) for each in topic.replicas], **dict(topic.properties)}
            for topic in plan.topics
        ],
        "workload": {"producers": [_producer(acks) for acks in PRODUCER_OF], "consumers": [_consumer()]},
        "expect": {plan.era: _expectation(patient.essence)},
    }
    head = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=120)
    return head + "steps:\n" + "".join(f"  - {step}\n" for step in _steps(plan))


def _expectation(essence: Essence) -> dict[str, str | int]:
    lost = len(essence.lost)
    if essence.checks:
        return {"verdict": "violation", "guarantee": "broken", "lost": lost}
    if lost:
        return {"verdict": "violation", "guarantee": "exceeded", "lost": lost}
    return {"verdict": "valid", "lost": 0}


def _properties(given: Mapping[str, str]) -> dict[str, str]:
    return {key: str(int(value) * SCALE) if key.endswith(".ms") else value for key, value in given.items()}


def _producer(acks: Acks) -> dict[str, str | int]:
    return {
        "name": PRODUCER_OF[acks],
        "acks": _ACKS[acks],
        "rate": 0,
        "request.timeout.ms": PRODUCER.request_timeout_ms * SCALE,
        "delivery.timeout.ms": PRODUCER.delivery_timeout_ms * SCALE,
        "retry.backoff.ms": PRODUCER.retry_backoff_ms * SCALE,
        "metadata.max.age.ms": PRODUCER.metadata_max_age_ms * SCALE,
    }


def _consumer() -> dict[str, int]:
    return {
        "request.timeout.ms": CONSUMER.request_timeout_ms * SCALE,
        "retry.backoff.ms": CONSUMER.retry_backoff_ms * SCALE,
        "metadata.max.age.ms": CONSUMER.metadata_max_age_ms * SCALE,
        "fetch.max.wait.ms": CONSUMER.fetch_max_wait_ms * SCALE,
    }


def _steps(plan: Plan) -> Iterator[str]:
    journal = Journal()
    simulation = Simulation(plan, journal=journal)
    simulation.begin()
    seen: dict[str, str] = {}
    yield from _barriers(simulation.cluster, journal, seen)
    for action in plan.actions:
        yield from steps_of(action)
        simulation.play(action)
        if isinstance(action, Wait):
            yield from _barriers(simulation.cluster, journal, seen)


def _barriers(cluster: SimulatedCluster, journal: Journal, seen: dict[str, str]) -> Iterator[str]:
    """Yields a barrier for each thing that is not as it was ``seen`` last, and updates that."""
    for what, state in _sights(cluster, journal):
        if seen.get(what) != state:
            seen[what] = state
            yield f"until: {{{what}, {state}}}"


def _sights(cluster: SimulatedCluster, journal: Journal) -> Iterator[tuple[str, str]]:
    counters = Counters()
    for _, client, record in journal.history:
        if isinstance(record, SendRecorded):
            counters.add_send(record, PRODUCERS[client])
    for count in counters.progress().acked:
        acks = _ACKS[Acks(count.acks)]
        yield f"partition: {count.topic_partition}, acks: {acks}, since: run", f"acked: {count.records}"
    for broker_id, registration in sorted(cluster.controller.image.brokers.items()):
        yield f"node: {broker_id}", f"fenced: {'true' if registration.fenced else 'false'}"
    for partition, state in sorted(cluster.controller.image.partitions.items()):
        yield f"partition: {partition}", _partition(state)
        yield from _log_ends(cluster, partition, state)


def _partition(state: PartitionState) -> str:
    leader = "none" if state.leader is None else str(state.leader)
    return f"leader: {leader}, isr: {sorted(state.isr)}, elr: {sorted(state.elr)}"


def _log_ends(cluster: SimulatedCluster, partition: TopicPartition, state: PartitionState) -> Iterator[tuple[str, str]]:
    for replica in state.replicas:
        node = cluster.nodes[replica]
        if node.core is not None and partition in node.disk.logs:
            yield f"node: {replica}, log: {partition}", f"end: {node.disk.logs[partition].log_end_offset}"

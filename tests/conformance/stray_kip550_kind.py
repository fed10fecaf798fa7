"""Vectors of KIP-550's own terms: a LeaderAndIsr that lists all replicas, and what is then scheduled for deletion."""

from collections.abc import Mapping
from typing import Final

from laststand.emulator.core import effects
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.types import BrokerEpoch, CauseId, LeaderEpoch, PartitionEpoch
from laststand.emulator.core.zookeeper import control_messages
from tests.conformance.broker_node_kinds import partition_of
from tests.conformance.harness import Fields, Handler, Vector, outcome_mismatches
from tests.conformance.zookeeper_broker_kinds import BrokerWorld, loaded_log
from tests.conformance.zookeeper_world import CONTROLLER, TERM, broker, brokers, error_name

_OWN_EPOCH: Final = 7


def run_stray_kip550(vector: Vector) -> list[str]:
    """Logs on disk that are deleted once their grace is over, and the answer to the request."""
    world = BrokerWorld(vector)
    world.fence.broker_epoch = BrokerEpoch(_OWN_EPOCH)
    world.put_alive((0, 1))
    world.requests.add_logs(loaded_log(partition_of(name), None) for name in vector.before["on_disk"])
    error = None
    for step in vector.steps:
        if step["op"] != "leader_and_isr":
            return [f"operation {step['op']} is not known"]
        request = _request(step, vector.before["request"])
        error = error_name(world.requests.handle_leader_and_isr(world.turn(), request).response.error)
    turn = Turn(now_ms=world.strays.timers.earliest_ms or 0, cause_id=CauseId("vector"))
    world.strays.handle_timer(turn)
    deleted = [str(effect.partition) for effect in turn.effects() if isinstance(effect, effects.DeleteStrayLog)]
    seen = {"scheduled_for_deletion": deleted, "error": error}
    return outcome_mismatches(vector, seen, sets=("scheduled_for_deletion",))


def _request(step: Fields, names: list[str]) -> control_messages.LeaderAndIsrRequest:
    is_stale = step.get("stale_broker_epoch", False)
    return control_messages.LeaderAndIsrRequest(
        controller_id=CONTROLLER,
        controller_epoch=TERM,
        broker_epoch=BrokerEpoch(_OWN_EPOCH - 1 if is_stale else _OWN_EPOCH),
        contains_all_replicas=step["contains_all_replicas"],
        partitions=tuple(
            control_messages.LeaderAndIsrPartition(
                name=partition_of(name),
                controller_epoch=TERM,
                leader=broker(1),
                leader_epoch=LeaderEpoch(0),
                isr=brokers((0, 1)),
                partition_epoch=PartitionEpoch(0),
                replicas=brokers((0, 1)),
            )
            for name in names
        ),
    )


KINDS: Final[Mapping[str, Handler]] = {"stray_kip550": run_stray_kip550}

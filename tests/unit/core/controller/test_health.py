"""Metrics of the partitions: which are short of replicas, and which wait for whom (KIP-966, Metrics)."""

from typing import Literal

import msgspec
import pytest

from laststand.emulator.core.controller.health import ControllerHealth, controller_health
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from tests.unit.core.controller.controller_driver import CONTROLLER, ORDERS, ControllerDriver, ids

Strategy = Literal["None", "Balanced", "Aggressive"]


def driver() -> ControllerDriver:
    made = ControllerDriver(Switches(), NodeProperties(min_insync_replicas=2, auto_leader_rebalance_enable=False))
    made.boot(0, 1, 2)
    made.create_topic("orders", ids(0, 1, 2))
    return made


def test_an_isr_of_min_isr_is_not_under_it() -> None:
    made = driver()
    counts = []
    for isr in ((0, 1), (0,)):
        made.alter(0, isr)
        counts.append(made.controller.health().under_min_isr)
    assert counts == [0, 1]


def test_members_of_isr_and_elr_are_electable() -> None:
    made = driver()
    made.alter(0, (0, 1))
    made.alter(0, (0,))
    assert made.image.partitions[ORDERS].elr == ids(1)
    assert made.controller.health().electable_leaders == {ORDERS: 2}


def test_leaders_that_are_not_the_preferred_ones_are_counted() -> None:
    made = driver()
    assert made.controller.health().preferred_imbalance == 0
    made.create_topic("events", ids(1, 2), ids(1, 0))
    made.heartbeat(1, "fence")
    assert made.controller.health().preferred_imbalance == 2


def offline(state: PartitionState, *, manager: bool, strategy: Strategy) -> ControllerHealth:
    """Returns the health of a cluster with one partition, of which that is the state."""
    made = driver()
    made.image.partitions[ORDERS] = state
    properties = msgspec.structs.replace(
        made.properties, unclean_recovery_manager_enabled=manager, unclean_recovery_strategy=strategy
    )
    view = ClusterView(image=made.image, properties=properties, switches=made.switches, node_id=CONTROLLER)
    return controller_health(view, under_way=())


LOST = msgspec.structs.replace(driver().image.partitions[ORDERS], leader=None, isr=(), elr=())


@pytest.mark.parametrize(
    ("state", "manager", "strategy", "count"),
    [
        (LOST, False, "None", 1),
        (LOST, True, "None", 1),
        (LOST, False, "Balanced", 1),
        (LOST, True, "Balanced", 0),
        (LOST, False, "Aggressive", 0),
        (msgspec.structs.replace(LOST, isr=ids(0)), False, "None", 0),
        (msgspec.structs.replace(LOST, elr=ids(0)), False, "None", 0),
        (msgspec.structs.replace(LOST, last_known_leader=ids(0)[0]), False, "Balanced", 0),
    ],
)
def test_an_administrator_is_waited_for_where_nothing_else_can_give_a_leader(
    state: PartitionState, strategy: Strategy, count: int, *, manager: bool
) -> None:
    assert offline(state, manager=manager, strategy=strategy).manual_election_required == count


def test_a_partition_that_waits_for_its_last_known_elr_is_under_unclean_recovery() -> None:
    waiting = msgspec.structs.replace(LOST, replicas=ids(0, 1, 7), last_known_elr=ids(7))
    assert offline(waiting, manager=True, strategy="Balanced").unclean_recoveries == 1
    assert offline(waiting, manager=False, strategy="Balanced").unclean_recoveries == 0

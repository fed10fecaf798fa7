"""Combined mode: which actions are about a whole process."""

from functools import partial

from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.machines import on_machines
from laststand.emulator.plan.nodes import machine_of

THREE = partial(machine_of, controllers=3)


def nodes(*ids: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))


def test_a_controller_shares_its_process_with_the_broker_of_its_place() -> None:
    assert [THREE(NodeId(each)) for each in (0, 102, 3, 103)] == [nodes(0, 100), nodes(2, 102), nodes(3), nodes(103)]


def test_what_is_done_to_a_process_is_done_to_all_in_it_once() -> None:
    assert on_machines(actions.Kill(nodes=nodes(100, 0, 3)), THREE) == actions.Kill(nodes=nodes(0, 100, 3))
    assert on_machines(actions.Pause(nodes=nodes(1)), THREE) == actions.Pause(nodes=nodes(1, 101))


def test_what_is_done_to_a_role_or_a_link_stays() -> None:
    isolate, full = actions.Isolate(nodes=nodes(0)), actions.DiskFull(nodes=nodes(1), left=0)
    assert on_machines(isolate, THREE) == isolate
    assert on_machines(full, THREE) == full

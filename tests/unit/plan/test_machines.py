"""Combined mode: which actions are about a whole process."""

from functools import partial

import pytest

from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.machines import on_machines, together
from laststand.emulator.plan.nodes import machine_of

THREE = partial(machine_of, controllers=3)


def nodes(*ids: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))


def link(source: int, target: int) -> Link[NodeId]:
    return Link(NodeId(source), NodeId(target))


def test_a_controller_shares_its_process_with_the_broker_of_its_place() -> None:
    assert [THREE(NodeId(each)) for each in (0, 102, 3, 103)] == [nodes(0, 100), nodes(2, 102), nodes(3), nodes(103)]


def test_an_action_on_a_process_hits_all_its_nodes_once() -> None:
    assert on_machines(actions.Kill(nodes=nodes(100, 0, 3)), THREE) == (actions.Kill(nodes=nodes(0, 100, 3)),)
    assert on_machines(actions.Pause(nodes=nodes(1)), THREE) == (actions.Pause(nodes=nodes(1, 101)),)


def test_a_machine_has_one_network() -> None:
    isolated, whole = on_machines(actions.Isolate(nodes=nodes(0)), THREE), actions.Isolate(nodes=nodes(0, 100))
    assert isolated == (whole,)
    cut = on_machines(actions.Cut(link=link(100, 3)), THREE)
    assert cut == (actions.Cut(link=link(100, 3)), actions.Cut(link=link(0, 3)))
    lost = on_machines(actions.LoseResponses(link=link(0, 101)), THREE)
    assert [each.link for each in lost if isinstance(each, actions.LoseResponses)] == [
        link(0, 101), link(0, 1), link(100, 1), link(100, 101),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "action",
    [
        actions.DiskFull(nodes=nodes(1), left=0),
        actions.Isolate(nodes=nodes(0), roles=actions.Roles.NAMED),
        actions.Cut(link=link(0, 1), roles=actions.Roles.NAMED),
        actions.Cut(link=link(0, 100)),
        actions.Slow(link=link(1000, 0), latency_ms=1),
    ],
    ids=str,
)
def test_what_is_done_to_a_disk_to_a_named_role_within_a_machine_or_to_clients_stays(action: actions.Action) -> None:
    assert on_machines(action, THREE) == (action,)


def test_the_outcome_of_several_links_is_that_of_those_that_changed() -> None:
    proved, unproved, idle = actions.effective("silent"), actions.unproved("bytes pass"), actions.no_op("it is cut")
    first, second = actions.Cut(link=link(0, 1)), actions.Cut(link=link(100, 101))
    assert together([(actions.Kill(nodes=nodes(0)), proved)]) == proved
    one = together([(first, proved), (second, idle)])
    assert (one.took_effect, one.affected, one.seen) == (True, True, "0->1: silent")
    none = together([(first, idle), (second, idle)])
    assert (none.took_effect, none.affected, none.seen) == (False, False, f"0->1: {idle.seen}; 100->101: {idle.seen}")
    both = together([(first, proved), (second, unproved)])
    assert (both.took_effect, both.affected) == (True, False)
    assert both.seen == f"0->1: silent; 100->101: {unproved.seen}"

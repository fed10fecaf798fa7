"""Events that tell of a committed record: every field that somebody else judges by."""

from laststand.emulator.core import admin_messages, events
from laststand.emulator.core.switches import ClearElr, Switches
from tests.unit.core.controller.controller_driver import ids
from tests.unit.core.controller.test_admin_requests import driver, set_configs, setting


def test_a_reassignment_is_described_with_added_and_removed_replicas() -> None:
    made = driver()
    made.boot(3)
    move = admin_messages.ReassignablePartition(topic="orders", partition=0, replicas=ids(3, 1, 2))
    made.ask(
        admin_messages.AlterPartitionReassignmentsRequest(partitions=(move,)),
        admin_messages.AlterPartitionReassignmentsResponse,
    )
    change = [event for event in made.events if isinstance(event, events.PartitionChanged)][-1]
    assert (change.adding_replicas, change.removing_replicas) == (ids(3), ids(0))


def test_a_configuration_is_described_with_its_value() -> None:
    made = driver(switches=Switches(clear_elr_on_min_isr_change=ClearElr.ALWAYS))
    set_configs(made, setting("min.insync.replicas", "3"))
    changes = [event for event in made.events if isinstance(event, events.ConfigChanged)]
    assert [(event.resource_name, event.value) for event in changes if event.resource_name] == [("orders", "3")]
    cleared = [event.topic_id for event in made.events if isinstance(event, events.ElrCleared)]
    assert cleared == ["orders-id"]

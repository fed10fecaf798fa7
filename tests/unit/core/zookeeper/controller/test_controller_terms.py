"""Terms: who is elected, what a controller that was replaced can still do, and what a session's end means."""

import msgspec
import pytest

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.zookeeper import exchange, operations
from laststand.emulator.core.zookeeper.controller.controller_election import register_controller
from laststand.emulator.core.zookeeper.errors import ControllerMovedError
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS
from tests.unit.core.zookeeper.controller.controllers import CAUSE, ORDERS, Cluster, Process, broker, isr_change, roles


def test_the_first_broker_is_elected_and_the_others_watch() -> None:
    cluster = Cluster(1, 2, 3)
    assert cluster.active() is cluster[1]
    assert [process.controller.is_active for process in cluster.processes.values()] == [True, False, False]
    assert cluster.server.data(paths.CONTROLLER_EPOCH) == b"1"


def test_a_topic_is_brought_online_and_its_replicas_get_leader_and_isr() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    assert cluster.shown() == "leader=2 isr=2,3 LE=0 PE=0"
    assert roles(cluster[2])[0] == roles(cluster[3])[0] == "orders-0 leader=2 LE=0"
    assert roles(cluster[1]) == []


def test_another_takes_over_with_the_next_epoch_when_the_session_ends() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2, 3)
    cluster.kill(1)
    cluster.expire(1)
    cluster.settle()
    assert cluster.active() is cluster[2]
    assert cluster.server.data(paths.CONTROLLER_EPOCH) == b"2"
    # A new controller writes twice: the dead leader leaves the ISR, then another is elected.
    assert cluster.shown() == "leader=2 isr=2,3 LE=2 PE=2"
    assert cluster.state().controller_epoch == 2


def test_an_administrator_can_depose_the_controller() -> None:
    cluster = Cluster(1, 2)
    cluster[1].is_paused = True
    cluster.write(operations.Delete(path=paths.CONTROLLER, version=None))
    assert cluster.active() is cluster[2]
    cluster[1].is_paused = False
    cluster.settle()
    assert not cluster[1].controller.is_active


def test_a_lost_answer_does_not_cost_the_election() -> None:
    cluster = Cluster(1)
    process = cluster[1]
    process.loses_next_answer = True
    cluster.write(operations.Delete(path=paths.CONTROLLER, version=None))
    assert process.controller.is_active
    assert cluster.server.data(paths.CONTROLLER_EPOCH) == b"2"
    assert process.term.context.controller_epoch == 2


def test_a_broker_that_missed_a_whole_term_is_not_elected_by_the_epoch_that_it_read() -> None:
    cluster = Cluster(1, 2)
    cluster[1].is_paused = cluster[2].is_paused = True
    cluster.write(operations.Delete(path=paths.CONTROLLER, version=None))

    def another_term(steps: operations.Steps) -> None:
        if isinstance(steps[0], operations.Transaction):
            cluster.write(operations.SetData(path=paths.CONTROLLER_EPOCH, data=b"2", version=None))

    with pytest.raises(ControllerMovedError):
        cluster.run(2, register_controller(broker(2), now_ms=0), meanwhile=another_term)
    assert cluster.server.data(paths.CONTROLLER) is None


def _with_a_zombie(*, is_fenced: bool) -> tuple[Cluster, int]:
    """Broker 1 sleeps while 2 is elected; an ISR change reaches it before the news of that."""
    era = ZOOKEEPER_ERAS["kafka-3.9-zk"]
    rules = msgspec.structs.replace(era.rules, controller_epoch_fence=is_fenced)
    cluster = Cluster(1, 2, 3, tested_era=msgspec.structs.replace(era, rules=rules))
    cluster.create_topic(2, 3, 1)
    cluster[1].is_paused = True
    altered = cluster.ask_later(1, isr_change(cluster, 2, 3, sender=2))
    cluster.write(operations.Delete(path=paths.CONTROLLER, version=None))
    assert cluster.active() is cluster[2]
    while altered not in cluster[1].answers:
        cluster.deliver_one(1)
    return cluster, altered


def test_a_controller_that_was_replaced_writes_nothing() -> None:
    cluster, altered = _with_a_zombie(is_fenced=True)
    zombie = cluster[1]
    assert cluster.shown() == "leader=2 isr=2,3,1 LE=0 PE=0"
    response = zombie.answers[altered]
    assert isinstance(response, messages.AlterPartitionResponse)
    assert response.error is ErrorCode.UNKNOWN_SERVER_ERROR
    zombie.is_paused = False
    cluster.settle()
    assert not zombie.controller.is_active


def test_without_the_fence_two_controllers_write_one_node() -> None:
    cluster, _ = _with_a_zombie(is_fenced=False)
    assert cluster.shown() == "leader=2 isr=2,3 LE=0 PE=1"
    assert cluster.state().controller_epoch == 1
    assert cluster.active() is cluster[2]


def _led_elsewhere() -> Cluster:
    """A partition prefers broker 2, which was away for a moment: 3 leads it, and 2 is in sync again."""
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2, 3)
    cluster.expire(2)
    cluster.settle()
    cluster.ask(1, isr_change(cluster, 3, 2, sender=3))
    cluster[1].answers.clear()
    return cluster


def _elect(cluster: Cluster, number: int) -> int:
    """Asks a process for preferred leaders, and waits for nothing; returns the request's id."""
    return cluster.ask_later(number, admin_messages.ElectLeadersRequest(election_type=0, partitions=None))


def _elections(process: Process) -> list[tuple[int, ErrorCode]]:
    return [(number, response.error) for number, response in process.answers.items()]


def test_a_controller_that_was_replaced_says_so_when_it_finds_out() -> None:
    cluster = _led_elsewhere()
    cluster[1].is_paused = True
    elected = _elect(cluster, 1)
    cluster.write(operations.Delete(path=paths.CONTROLLER, version=None))
    while not cluster[1].answers:
        cluster.deliver_one(1)
    assert _elections(cluster[1]) == [(elected, ErrorCode.NOT_CONTROLLER)]
    assert cluster.state().leader_and_isr.leader == broker(3)


def test_a_request_that_ends_in_a_node_which_is_gone_fails_and_the_controller_goes_on() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(2)
    cluster[1].is_paused = True
    moved = admin_messages.ReassignablePartition(topic="orders", partition=0, replicas=(broker(3),))
    asked = cluster.ask_later(1, admin_messages.AlterPartitionReassignmentsRequest(partitions=(moved,)))
    nodes = (paths.state_node(ORDERS), paths.partition_node(ORDERS), paths.partitions_node("orders"))
    cluster.write(*(operations.Delete(path=path, version=None) for path in (*nodes, paths.topic_node("orders"))))
    cluster[1].is_paused = False
    cluster.settle()
    assert _elections(cluster[1]) == [(asked, ErrorCode.UNKNOWN_SERVER_ERROR)]
    assert cluster[1].controller.is_active


def test_the_end_of_a_session_empties_the_queue() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic(1, 2)
    process = cluster[1]
    process.is_paused = True
    altered = cluster.ask_later(1, isr_change(cluster, 1))
    elected = _elect(cluster, 1)
    cluster.deliver_one(1)
    cluster.deliver_one(1)
    assert process.answers == {}
    cluster.expire(1)
    process.inbox.rotate(1)
    cluster.deliver_one(1)
    assert _elections(process) == [(elected, ErrorCode.NOT_CONTROLLER)]
    assert altered not in process.answers  # its sender waits


def test_what_was_answered_is_not_refused_when_the_session_ends() -> None:
    cluster = Cluster(1)
    process = cluster[1]
    answered = _elect(cluster, 1)
    cluster.settle()
    process.is_paused = True
    cluster.expire(1)
    cluster.deliver_one(1)
    assert _elections(process) == [(answered, ErrorCode.NONE)]


def test_the_end_of_a_session_refuses_what_waits_for_zookeeper() -> None:
    cluster = _led_elsewhere()
    process = cluster[1]
    process.is_paused = True
    elected = _elect(cluster, 1)
    cluster.deliver_one(1)
    assert process.answers == {}
    cluster.expire(1)
    process.inbox.rotate(1)
    cluster.deliver_one(1)
    assert _elections(process) == [(elected, ErrorCode.NOT_CONTROLLER)]


def test_a_process_comes_back_in_a_new_session_with_a_new_epoch() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic(1, 2, 3)
    cluster.expire(3)
    cluster.settle()
    assert len(cluster[3].broker_epochs) == 2
    assert cluster[3].broker_epochs[1] > cluster[3].broker_epochs[0]
    # Whether the controller saw it gone or bounced, it left the ISR once.
    assert cluster.shown() == "leader=1 isr=1,2 LE=1 PE=1"
    assert roles(cluster[3])[-1] == "orders-0 leader=1 LE=1"


def test_a_killed_broker_cannot_come_back_before_its_session_is_gone() -> None:
    cluster = Cluster(1, 2)
    cluster.kill(2)
    again = cluster.start(2)
    assert again.is_refused
    assert again.broker_epochs == []


def test_a_process_whose_old_node_is_still_there_makes_it_anew() -> None:
    # KAFKA-7165 (Z26): the server is slow to end the session that the process knows to be gone.
    cluster = Cluster(1, 2)
    cluster[2].inbox.append(exchange.SessionExpired(CAUSE))
    cluster.settle()
    stat = cluster.server.stat(paths.broker_node(broker(2)))
    assert stat is not None
    assert stat.ephemeral_owner == cluster[2].session_id
    assert cluster[2].broker_epochs == sorted(cluster[2].broker_epochs)
    assert len(cluster[2].broker_epochs) == 2

"""Controllers on top of the quorum: who is active, what is published, and what becomes of it at a failover."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.events import OtherRecordCommitted
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.quorum.effects import QuorumEffect
from laststand.emulator.core.quorum.inputs import Proposed
from laststand.emulator.core.quorum.messages import RemoveRaftVoterRequest
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ControlRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataBatch,
)
from laststand.emulator.core.types import BrokerEpoch, BrokerId, LeaderEpoch, MetadataOffset, NodeId
from tests.unit.core.quorum_controller.controllers import NODES, Controllers


def fold(batches: list[MetadataBatch]) -> MetadataImage:
    image = MetadataImage()
    for batch in batches:
        for index, record in enumerate(batch.records):
            image.replay(record, offset=MetadataOffset(batch.base_offset + index))
    return image


def heartbeat(epoch: int, *, controller_epoch: int = 0) -> messages.BrokerHeartbeatRequest:
    return messages.BrokerHeartbeatRequest(
        broker_id=BrokerId(NodeId(1)),
        broker_epoch=BrokerEpoch(epoch),
        current_metadata_offset=MetadataOffset(0),
        want_fence=True,
        want_shut_down=False,
        controller_epoch=LeaderEpoch(controller_epoch),
    )


def test_only_the_leader_is_active_and_the_others_refuse() -> None:
    controllers = Controllers()
    active = controllers.elect()
    for node_id in NODES:
        request = controllers.register(node_id, 1)
        controllers.run(50)
        expected = ErrorCode.NONE if node_id == active else ErrorCode.NOT_CONTROLLER
        assert controllers.error(request) is expected
        assert (controllers.served[node_id] is not None) is (node_id == active)


def test_every_controller_publishes_the_same_committed_records_bootstrap_first() -> None:
    controllers = Controllers()
    active = controllers.elect()
    controllers.register(active, 1)
    controllers.run(1000)
    published = controllers.published[active]
    assert all(controllers.published[node_id] == published for node_id in NODES)
    image = fold(published)
    assert image.features
    assert set(image.brokers) == {1}
    core = controllers.core[active]
    assert core.active is not None
    assert core.active.image.brokers == image.brokers
    assert core.active.image.next_offset == image.next_offset


def test_an_answer_waits_for_the_majority_and_is_undecided_at_a_deposition() -> None:
    controllers = Controllers()
    old = controllers.elect()
    controllers.run(100)
    before = len(controllers.published[old])
    controllers.cut.add(old)
    request = controllers.register(old, 1)
    core = controllers.core[old]
    assert core.active is not None
    assert set(core.active.image.brokers) == {1}, "the controller goes on with what it has appended"
    assert controllers.error(request) is None
    assert len(controllers.published[old]) == before
    controllers.run(6000)
    new = controllers.active
    assert new != old
    assert core.active is None
    assert controllers.error(request) is ErrorCode.NOT_CONTROLLER
    controllers.cut.clear()
    controllers.run(3000)
    assert fold(controllers.published[old]).brokers == {}, "nobody ever committed it"
    assert controllers.published[old] == controllers.published[new]


def test_a_new_controller_goes_on_with_what_is_committed_and_gives_whole_sessions() -> None:
    controllers = Controllers()
    old = controllers.elect()
    first = controllers.register(old, 1)
    controllers.run(500)
    answer = controllers.answers[first]
    assert isinstance(answer, messages.BrokerRegistrationResponse)
    assert answer.controller_epoch == controllers.core[old].controller_epoch
    controllers.cut.add(old)
    controllers.run(6000)
    new = controllers.active
    again = controllers.register(new, 1)
    controllers.run(100)
    repeated = controllers.answers[again]
    assert isinstance(repeated, messages.BrokerRegistrationResponse)
    assert repeated.broker_epoch == answer.broker_epoch, "the same process keeps its epoch"
    assert repeated.controller_epoch > answer.controller_epoch
    facts = [event for event in controllers.facts[old] if type(event).__name__ == "BrokerRegistered"]
    assert len(facts) == 1
    assert not [event for event in controllers.facts[new] if type(event).__name__ == "BrokerRegistered"]


def test_a_controller_refuses_a_broker_that_knows_of_its_successor() -> None:
    controllers = Controllers()
    active = controllers.elect()
    epoch = controllers.core[active].controller_epoch
    request = controllers.ask(active, heartbeat(0, controller_epoch=epoch + 1))
    assert controllers.error(request) is ErrorCode.NOT_CONTROLLER
    request = controllers.ask(active, heartbeat(0, controller_epoch=epoch))
    controllers.run(50)
    assert controllers.error(request) is ErrorCode.STALE_BROKER_EPOCH


def test_after_a_restart_of_all_the_log_is_what_it_was() -> None:
    controllers = Controllers()
    active = controllers.elect()
    controllers.register(active, 1)
    controllers.run(1000)
    before = controllers.published[active]
    for node_id in NODES:
        controllers.start(node_id)
    controllers.elect()
    controllers.run(1000)
    after = controllers.published[controllers.active]
    assert after[: len(before)] == before
    assert set(fold(after).brokers) == {1}


def test_a_change_of_voters_takes_an_offset_of_the_metadata_log() -> None:
    controllers = Controllers()
    active = controllers.elect()
    controllers.register(active, 1)
    controllers.run(100)
    removed = next(node_id for node_id in NODES if node_id != active)
    key = ReplicaKey(removed, DirectoryId(f"disk-{removed}"))
    controllers.ask(active, cast(messages.Request, RemoveRaftVoterRequest(voter=key)))
    request = controllers.register(active, 2)
    controllers.run(1000)
    assert controllers.error(request) is ErrorCode.NONE
    published = controllers.published[active]
    names = [record.name for batch in published for record in batch.records if isinstance(record, ControlRecord)]
    assert names == ["LeaderChange", "KRaftVersion", "KRaftVoters", "KRaftVoters"]
    transaction = ["BeginTransactionRecord", "EndTransactionRecord"]
    assert set(fold(published).brokers) == {1, 2}
    control = [event for event in controllers.facts[active] if isinstance(event, OtherRecordCommitted)]
    assert [event.record for event in control] == [*names[:3], *transaction, *names[3:]]


def test_a_leader_that_commits_its_own_removal_writes_that_down() -> None:
    controllers = Controllers()
    active = controllers.elect()
    controllers.run(100)
    key = ReplicaKey(active, DirectoryId(f"disk-{active}"))
    controllers.ask(active, cast(messages.Request, RemoveRaftVoterRequest(voter=key)))
    controllers.run(5000)
    assert controllers.active != active
    written = [event for facts in controllers.facts.values() for event in facts]
    noted = {event.metadata_offset for event in written if isinstance(event, OtherRecordCommitted)}
    published = [
        batch.base_offset + place
        for batch in controllers.published[controllers.active]
        for place, record in enumerate(batch.records)
        if isinstance(record, ControlRecord | BeginTransactionRecord | EndTransactionRecord)
    ]
    assert len(published) == 7, "the last ones are the removal, and the successor's first record"
    assert noted == set(published)


def test_a_controller_aborts_the_transaction_that_its_predecessor_left_open() -> None:
    controllers = Controllers()
    old = controllers.elect()
    controllers.register(old, 1)
    controllers.run(500)
    controller = controllers.core[old].active
    assert controller is not None
    start = controller.image.next_offset
    left_open = (BeginTransactionRecord(), FeatureLevelRecord(name="metadata.version", feature_level=20))
    controllers.write(old, left_open)
    read_in_between = controllers.register(old, 2)
    controllers.run(500)
    assert controllers.core[old].offsets.committed_end == controllers.core[old].offsets.write_end
    assert controllers.core[old].offsets.stable_end == start, "what is committed does not count yet"
    assert controllers.error(read_in_between) is None
    assert all(batch.end_offset <= start for batch in controllers.published[old]), "nor does anybody hear of it"
    controllers.cut.add(old)
    controllers.run(6000)
    new = controllers.active
    assert controllers.error(read_in_between) is ErrorCode.NOT_CONTROLLER
    image = fold(controllers.published[new])
    assert image.features["metadata.version"] > 20
    assert set(image.brokers) == {1}, "the transaction was aborted with all that lay in it"
    aborted = [record for batch in controllers.published[new] for record in batch.records][-1]
    assert aborted == AbortTransactionRecord(reason="Controller failover")
    facts = [
        event for event in controllers.facts[new] if type(event).__name__ in ("FeatureChanged", "BrokerRegistered")
    ]
    assert facts == []
    controllers.cut.clear()
    controllers.run(3000)
    assert fold(controllers.published[old]).features == image.features


def test_a_bug_in_an_operation_costs_the_leadership_and_not_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    controllers = Controllers()
    old = controllers.elect()
    controllers.run(500)
    epoch = controllers.core[old].controller_epoch

    def stumble(*_: object, **__: object) -> list[object]:
        raise ZeroDivisionError

    monkeypatch.setattr(controllers.core[old].active, "step", stumble)
    request = controllers.register(old, 1)
    assert controllers.error(request) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert controllers.core[old].active is None
    assert [(fault.failure.operation, type(fault.error)) for fault in controllers.faults] == [
        ("BrokerRegistrationRequest", ZeroDivisionError)
    ]
    controllers.run(6000)
    assert controllers.core[controllers.active].controller_epoch > epoch
    again = controllers.register(controllers.active, 1)
    controllers.run(100)
    assert controllers.error(again) is ErrorCode.NONE


def test_a_bug_in_the_quorum_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    controllers = Controllers()
    active = controllers.elect()
    controllers.run(500)
    step = controllers.core[active].quorum.step

    def stumble(incoming: object, *, now_ms: int) -> Sequence[QuorumEffect]:
        if isinstance(incoming, Proposed):
            raise ZeroDivisionError
        return step(cast(Any, incoming), now_ms=now_ms)

    monkeypatch.setattr(controllers.core[active].quorum, "step", stumble)
    with pytest.raises(ZeroDivisionError):
        controllers.register(active, 1)


def test_a_record_that_cannot_be_applied_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    controllers = Controllers()
    active = controllers.elect()
    controllers.run(500)

    def break_a_rule(*_: object, **__: object) -> list[object]:
        raise InvariantError("M1")

    monkeypatch.setattr(controllers.core[active].active, "step", break_a_rule)
    with pytest.raises(InvariantError, match="M1"):
        controllers.register(active, 1)

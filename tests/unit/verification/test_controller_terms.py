"""Terms of controllers, and the writer of each record: by the writes that ZooKeeper's server logged."""

from collections.abc import Iterable

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, MetadataOffset, ZnodeWrite
from laststand.emulator.verification.facts.controller_terms import ControllerTerms, state_node
from laststand.emulator.verification.tables.timeline import CollectedEvent

STATE = state_node("orders", 0)
CREATED, CHANGED, DELETED = ZnodeWrite.CREATED, ZnodeWrite.DATA_CHANGED, ZnodeWrite.DELETED


def terms_of(*written: tuple[int, int, str, ZnodeWrite]) -> ControllerTerms:
    return ControllerTerms(_told(written))


def _told(written: Iterable[tuple[int, int, str, ZnodeWrite]]) -> Iterable[CollectedEvent[events.ZnodeWritten]]:
    for sequence, (zxid, session_id, path, write) in enumerate(written):
        event = events.ZnodeWritten(
            cause_id=CauseId("test"),
            metadata_offset=MetadataOffset(zxid),
            path=path,
            write=write,
            session_id=session_id,
        )
        yield CollectedEvent(node=100, incarnation=0, sequence=sequence, event=event)


RUN = (
    (1, 70, "/brokers/ids/0", CREATED),
    (2, 80, "/brokers/ids/1", CREATED),
    (3, 80, "/controller", CREATED),
    (4, 80, STATE, CREATED),
    (5, 70, STATE, CHANGED),
    (6, 80, "/controller", DELETED),
    (6, 80, "/brokers/ids/1", DELETED),
    (7, 70, "/controller", CREATED),
    (8, 70, STATE, CHANGED),
    (9, 90, "/brokers/ids/1", CREATED),
    (10, 90, STATE, CHANGED),
    (11, 99, STATE, CHANGED),
)


def test_a_term_lasts_from_an_election_until_the_node_goes() -> None:
    found = [
        (term.broker, term.controller_epoch, term.begun.event.metadata_offset, term.ended and term.ended.sequence)
        for term in terms_of(*RUN).terms
    ]
    assert found == [(1, 1, 3, 5), (0, 2, 7, None)]


def test_a_kraft_cluster_has_none() -> None:
    assert terms_of().terms == ()
    assert terms_of().writer(4, STATE) is None


def test_a_writer_is_a_controller_from_its_election_on() -> None:
    terms = terms_of(*RUN)
    said = {zxid: str(terms.writer(zxid, STATE)) for zxid in (4, 5, 8, 10)}
    assert said == {
        4: "broker 1, controller in epoch 1,",
        5: "broker 0, the leader itself,",
        8: "broker 0, controller in epoch 2,",
        10: "broker 1, the leader itself,",  # under another session than that of its term
    }
    assert terms.writer(11, STATE) is None, "nobody registered under that session"

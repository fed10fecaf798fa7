"""X6 FencedProducer: nothing is committed of a producer that another session with its transactional id has fenced."""

from collections.abc import Iterator

from laststand.emulator.core.history import SessionOperation
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.transactions import End, SentTransaction, StoredBatch
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check
from laststand.emulator.verification.tables.client_history import SentBatch


@cluster_check(
    "X6",
    "FencedProducer",
    source="KIP-98, Fencing Zombie Producers; KIP-890",
    needs={Evidence.HISTORY, Evidence.FINAL_LOGS},
    premises={Premise.SESSION_FOLLOWED, Premise.SETTLED_RECORDS},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    facts = cluster.transactions
    for transaction in facts.sent():
        for send in transaction.sends:
            for copy in facts.copies_of(send) or ():
                successor = _successor(facts.sessions, transaction, send, copy)
                if copy.end is End.COMMIT and successor is not None:
                    where = f"{send.topic}-{send.partition} offset {send.base_offset}"
                    producer, epoch = copy.producer
                    yield Finding(
                        send.base_offset or 0,
                        f"{where}, of producer {producer} in epoch {epoch}, is committed, though "
                        f"{transaction.operation.transactional_id} had begun a session in which it is producer "
                        f"{successor.producer_id} in epoch {successor.producer_epoch}",
                    )


def _successor(
    sessions: list[SessionOperation], transaction: SentTransaction, send: SentBatch, copy: StoredBatch
) -> SessionOperation | None:
    """Returns a later session of the transactional id, if a batch was sent after its begin or ended by its epoch."""
    producer_id, epoch = copy.producer
    own = [each for each in sessions if each.transactional_id == transaction.operation.transactional_id]
    began = [
        place for place, each in enumerate(own) if each.producer_id == producer_id and each.producer_epoch <= epoch
    ]
    for session in own[began[-1] + 1 :] if began else ():
        is_sent_later = send.begun_ns is not None and send.begun_ns > session.time_ns
        is_ended_by_it = (
            session.producer_id == producer_id
            and copy.end_epoch is not None
            and copy.end_epoch >= session.producer_epoch
        )
        if is_sent_later or is_ended_by_it:
            return session
    return None

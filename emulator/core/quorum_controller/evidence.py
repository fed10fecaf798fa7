"""Events of the event log for the quorum's own evidence (``core/quorum/events.py``)."""

from typing import assert_never

from laststand.emulator.core import events
from laststand.emulator.core.quorum import events as quorum_events
from laststand.emulator.core.types import CauseId


def event_of(evidence: quorum_events.QuorumEvent, cause_id: CauseId) -> events.ControllerEvent | None:
    """Returns the event; ``None`` where ``ControllerActivated`` or ``ControllerDeposed`` records the same."""
    directory_id, epoch = evidence.replica.directory_id, evidence.leader_epoch
    match evidence:
        case quorum_events.VoteGranted(candidate=candidate):
            return events.QuorumVoteGranted(
                cause_id=cause_id,
                directory_id=directory_id,
                quorum_epoch=epoch,
                candidate=candidate.node_id,
                candidate_directory_id=candidate.directory_id,
            )
        case quorum_events.LeaderElected(start_offset=end_offset):
            return events.QuorumLeaderElected(
                cause_id=cause_id, directory_id=directory_id, quorum_epoch=epoch, log_end_offset=end_offset
            )
        case quorum_events.LeaderLearned(leader_id=leader_id):
            return events.QuorumLeaderFollowed(
                cause_id=cause_id, directory_id=directory_id, quorum_epoch=epoch, leader=leader_id
            )
        case quorum_events.HighWatermarkAdvanced(high_watermark=high_watermark, is_leader=is_leader):
            return events.MetadataCommittedUpTo(
                cause_id=cause_id,
                directory_id=directory_id,
                quorum_epoch=epoch,
                high_watermark=high_watermark,
                is_leader=is_leader,
            )
        case quorum_events.LogTruncated(from_end_offset=old, end_offset=new):
            return events.MetadataTruncated(
                cause_id=cause_id,
                directory_id=directory_id,
                quorum_epoch=epoch,
                old_end_offset=old,
                new_end_offset=new,
            )
        case (
            quorum_events.LeaderClaimed()
            | quorum_events.LeaderResigned()
            | quorum_events.LeaderDeposed()
            | quorum_events.VotersChanged()
        ):
            return None
        case _:
            assert_never(evidence)

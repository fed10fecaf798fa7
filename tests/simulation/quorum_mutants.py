"""Rules of the quorum switched off, and what schedules of the profile ``quorum`` are expected to find without each.

The one table: ``test_quorum`` wants a row for every rule. A rule whose absence contradicts no promise of safety has a
story in ``test_quorum_stories`` instead, which shows the difference.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.simulator.quorum.oracle import QuorumCheck


class Lethal(msgspec.Struct, frozen=True, kw_only=True):
    """A mutant that schedules find.

    Attributes:
        story: of the failure, in docs/quorum.md.
        checks: those of which at least one has to fire.
        beside: another rule that has to be missing, too, so that it can come to this; only ``checks`` are asked then.
    """

    story: str
    checks: frozenset[QuorumCheck]
    beside: str | None = None


class Harmless(msgspec.Struct, frozen=True, kw_only=True):
    """A mutant that breaks no promise of safety.

    Attributes:
        story: of the failure, in docs/quorum.md.
        why: there is nothing that schedules could find.
        test: which shows the difference.
    """

    story: str
    why: str
    test: str


def _lethal(story: str, *checks: QuorumCheck) -> Lethal:
    return Lethal(story=story, checks=frozenset(checks))


_TWO_LEADERS: Final = (QuorumCheck.ELECTION_SAFETY, QuorumCheck.VOTE_ONCE, QuorumCheck.NO_ILLEGAL_STATE)
_FORGOTTEN: Final = (
    QuorumCheck.LEADER_COMPLETENESS,
    QuorumCheck.NO_ILLEGAL_STATE,
    QuorumCheck.STATE_MACHINE_SAFETY,
)

QUORUM_MUTANTS: Final[Mapping[str, Lethal | Harmless]] = MappingProxyType(
    {
        "pre_vote": Harmless(
            story="Q20",
            why="an epoch that is raised for nothing costs a leader, and no record",
            test="test_a_voter_that_hears_nobody_leaves_the_leader_alone",
        ),
        "check_quorum": Harmless(
            story="Q10",
            why="a leader that is cut off commits nothing, however long it goes on",
            test="test_a_leader_that_is_cut_off_resigns",
        ),
        "directory_ids": _lethal("Q03", *_TWO_LEADERS, *_FORGOTTEN),
        "commit_own_epoch": _lethal("Q06", QuorumCheck.COMMIT_OWN_EPOCH),
        "vote_is_durable": _lethal("Q02", *_TWO_LEADERS, QuorumCheck.MONOTONIC_EPOCH),
        "vote_compares_logs": _lethal("-", *_FORGOTTEN),
        "one_vote_per_epoch": _lethal("Q01", *_TWO_LEADERS),
        "former_leader_resigns": _lethal(
            "-", QuorumCheck.LOG_MATCHING, QuorumCheck.COMMIT_BY_QUORUM, *_TWO_LEADERS, *_FORGOTTEN
        ),
        "follower_syncs_first": _lethal("Q08", QuorumCheck.COMMIT_BY_QUORUM),
        "leader_syncs_first": _lethal("Q07", QuorumCheck.COMMIT_BY_QUORUM),
        "start_syncs_log": _lethal("-", QuorumCheck.COMMIT_BY_QUORUM),
        "missing_state_stops": _lethal("Q01", *_TWO_LEADERS, QuorumCheck.MONOTONIC_EPOCH),
        "claim_follows_commit": _lethal("Q18", QuorumCheck.CLAIM_COMPLETE),
        # While the other rules hold, no leader lacks what is committed.
        "committed_is_never_cut": Lethal(
            story="Q03", checks=frozenset({QuorumCheck.MONOTONIC_HIGH_WATERMARK}), beside="directory_ids"
        ),
        "change_follows_commit": _lethal("Q28", *_TWO_LEADERS, *_FORGOTTEN),
        "known_leader_first": Harmless(
            story="-",
            why="votes are split, and the loser starts again in that epoch, in schedules of whole clusters alone",
            test="test_a_node_whose_rival_was_elected_starts_again",
        ),
        "stray_claims_are_unknown": _lethal("Q39", QuorumCheck.NO_ILLEGAL_STATE),
    }
)


def without(*rules: str) -> QuorumRules:
    """Returns all rules but some."""
    return msgspec.structs.replace(QuorumRules(), **dict.fromkeys(rules, False))

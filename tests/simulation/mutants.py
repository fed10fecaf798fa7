"""Mutants (rules switched off) and what the simulator is expected to find. The one table: every rule has a row in it.

Most rules keep what the guarantee covers. Some save records where it has ended, and are found by a plan that loses them
only without the rule. The others lose nothing, and their rows say why; where the rule makes a difference that can be
seen, a plan of ``regressions`` shows it, which ``test_regressions`` plays with the rule and without it; where there is
no such plan, the row's reason is an argument and no more.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.core.switches import DEFAULT_ERA, Switches
from laststand.emulator.verification.verdict.report import Verdict

Mutant: TypeAlias = tuple[str, str]
"""A switch and a rule of it that is not the default."""


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that every row has.

    Attributes:
        scenario: of docs/failures.md; ``-`` where it is in none.
        era: whose rules the others are.
        beside: rules of the era that have to be others, too, for the mutant to be at work.
    """

    scenario: str
    era: str = DEFAULT_ERA
    beside: tuple[Mutant, ...] = ()


class Lethal(_Row, frozen=True, kw_only=True):
    """A mutant that loses what the guarantee covers.

    Attributes:
        profiles: in which it shows.
        verdict: of verification on a run that shows it; unknown where its evidence cannot tell.
    """

    profiles: tuple[str, ...]
    verdict: Verdict = Verdict.VIOLATION


class Costly(_Row, frozen=True, kw_only=True):
    """A mutant that loses acknowledged records which its rule saves, but outside of the guarantee.

    Attributes:
        profiles: in which it shows.
    """

    profiles: tuple[str, ...]


class Harmless(_Row, frozen=True, kw_only=True):
    """A mutant that loses nothing that its rule would save, as far as schedules of its profiles tell.

    Attributes:
        why: there can be none.
        profiles: in which it could show; if none is named, those that are drawn unnamed.
        evidence: a plan of ``regressions`` whose symptom is there with the mutant only; ``None`` where there is none.
    """

    why: str
    profiles: tuple[str, ...] = ()
    evidence: str | None = None


Row: TypeAlias = Lethal | Costly | Harmless
"""The expectation about a mutant."""

_TRANSACTIONS: Final = ("transactions", "transactions-restarts")
_GROUPS: Final = ("groups", "members")
_AFTER_THE_GUARANTEE: Final = "it mends what an unclean election has lost, and the guarantee has ended with that"

MUTANTS: Final[Mapping[Mutant, Row]] = MappingProxyType(
    {
        ("elr", "off"): Lethal(scenario="S13", profiles=("restarts", "last-standing")),
        ("hw_requires_min_isr", "off"): Lethal(scenario="S14", profiles=("isr-churn", "last-standing")),
        ("min_isr_capped", "off"): Harmless(
            scenario="-", why="What is refused is not acknowledged: a partition with fewer replicas takes no acks=all."
        ),
        ("unclean_detection", "off"): Lethal(scenario="S16", profiles=("restarts",)),
        ("maximal_isr", "proposed"): Lethal(scenario="S07", profiles=("isr-churn",)),
        ("maximal_isr", "committed_only"): Lethal(scenario="S08", profiles=("isr-churn",)),
        ("truncation", "kip101"): Lethal(scenario="S03", profiles=("elections",)),
        ("truncation", "high_watermark"): Lethal(scenario="S01", profiles=("elections",)),
        ("ap_partition_epoch_check", "off"): Lethal(scenario="S09", profiles=("races",)),
        ("ap_broker_epoch_check", "off"): Lethal(scenario="S10", profiles=("races",)),
        ("truncation_sync", "off"): Lethal(scenario="S35", profiles=("races",)),
        ("holes_end_logs", "off"): Lethal(scenario="S47", profiles=("segments", "restarts")),
        ("truncation_ends_at_batch", "off"): Harmless(
            scenario="S49",
            beside=(("empty_logs_keep_epoch", "off"),),
            why="a follower that takes nothing is in no ISR; its leader goes on without it",
            evidence="s49-truncation-ends-at-batch-off.txt",
        ),
        ("empty_logs_keep_epoch", "off"): Lethal(scenario="S50", profiles=("unclean-races",)),
        ("lower_start_is_durable", "off"): Lethal(scenario="S51", profiles=("unclean-races",)),
        ("recovery_trims_epochs", "off"): Harmless(
            scenario="S48",
            beside=(("empty_logs_keep_epoch", "off"),),
            why="it cannot be in sync, unless its log ends between two of its leader's batches, and then it loses: "
            "kip-107/deleted-records-come-back, to which schedules do not come within the limit",
            evidence="s48-recovery-trims-epochs-off.txt",
        ),
        ("roles_after_registration", "off"): Lethal(scenario="S36", profiles=("races",)),
        ("clear_elr_on_min_isr_change", "off"): Lethal(scenario="S17", profiles=("min-isr",)),
        ("stray_cleanup", "off"): Lethal(scenario="S27", profiles=("reassignment",)),
        ("progress_of_this_term", "off"): Lethal(scenario="S43", profiles=("administrator", "features")),
        ("untouched_logs_stay_proven", "off"): Lethal(scenario="S46", profiles=("restarts",)),
        ("refusals_are_final", "off"): Lethal(scenario="S45", profiles=("races",)),
        ("answers_await_metadata", "off"): Lethal(scenario="S38", profiles=("min-isr",)),
        ("truncate_before_hw", "off"): Lethal(scenario="S22", profiles=("readers",)),
        ("elr_within_replicas", "off"): Harmless(
            scenario="S37",
            why="a reassignment ends, complete or cancelled, with min ISR members in the ISR, as many as the partition "
            "has replicas at most, and that empties the ELR; it is lethal beside min_isr_per_partition=off",
        ),
        ("min_isr_per_partition", "off"): Lethal(scenario="S42", profiles=("reassignment",)),
        ("cancel_requires_min_isr", "off"): Lethal(scenario="S39", profiles=("cancelled",)),
        ("reassignment_needs_all", "on"): Harmless(
            scenario="-",
            why="with every target there is never less than min ISR; a reassignment waits for a dead one that stays",
        ),
        ("reassignment_requires_min_isr", "off"): Harmless(
            scenario="S37",
            why="whoever leaves the ISR is replaced in it by who is added, and does not stay in the ELR; it is lethal "
            "beside elr_within_replicas=off",
        ),
        ("downgrade_ignores_elr", "off"): Lethal(scenario="S40", profiles=("downgrade",)),
        ("produce_topic_id", "off"): Lethal(scenario="S41", profiles=("reassignment",)),
        ("session_check", "unfenced"): Harmless(
            scenario="-",
            why="a fenced broker is in no ISR, its successor proves what it kept, and proposals and fetches name the "
            "epoch of either",
        ),
        ("last_known", "leader"): Costly(scenario="S33", profiles=("recovery",)),
        ("recovery_waits", "off"): Costly(scenario="S52", profiles=("recovery",)),
        ("unclean_pick", "first"): Costly(scenario="S34", profiles=("unclean-races",)),
        ("recovering_gate", "off"): Costly(scenario="S23", profiles=("unclean-races",)),
        ("stray_cleanup", "rename"): Harmless(
            scenario="S26",
            why="what was put aside is read by nobody; it only takes room",
            evidence="s26-stray-cleanup-rename.txt",
        ),
        ("coordinator_awaits_commit", "off"): Lethal(scenario="-", profiles=("groups",)),
        ("recovery_aborts_transactions", "off"): Harmless(
            scenario="T08", profiles=_TRANSACTIONS, why=_AFTER_THE_GUARANTEE
        ),
        ("recovery_asks_coordinator", "off"): Harmless(
            scenario="T08", profiles=_TRANSACTIONS, why=_AFTER_THE_GUARANTEE
        ),
        ("txn_recovery_scan", "off"): Harmless(scenario="T12", profiles=_TRANSACTIONS, why=_AFTER_THE_GUARANTEE),
        ("txn_recovery", "bump_all"): Harmless(
            scenario="T12",
            profiles=_TRANSACTIONS,
            why="sessions end that could have gone on, and no record is lost",
        ),
        ("txn_recovery", "off"): Harmless(scenario="-", profiles=_TRANSACTIONS, why=_AFTER_THE_GUARANTEE),
        ("offset_beyond_end", "serve"): Harmless(scenario="T14", profiles=_GROUPS, why=_AFTER_THE_GUARANTEE),
        ("group_recovery", "hold"): Harmless(scenario="-", profiles=_GROUPS, why=_AFTER_THE_GUARANTEE),
        ("group_recovery", "off"): Harmless(
            scenario="T29",
            profiles=_GROUPS,
            why="no record is lost; a partition has two owners until the next heartbeat of one of them",
            evidence="t29-a-generation-that-is-given-twice.txt",
        ),
        ("generation_fencing", "off"): Harmless(
            scenario="T16",
            profiles=_GROUPS,
            why="schedules have no transactions on behalf of members; a plan has, and a record is read in two of them",
            evidence="t16-a-member-of-a-former-generation-commits.txt",
        ),
        ("partition_verification", "off"): Lethal(scenario="T03", profiles=("transactions",)),
        ("epoch_per_transaction", "off"): Lethal(scenario="T01", profiles=("transactions",)),
        ("clear_elr_on_min_isr_change", "always"): Harmless(
            scenario="S17",
            why="fewer candidates: an offline partition waits longer, and loses nothing",
            evidence="s17-elr-always-cleared.txt",
        ),
    }
)
"""By mutant."""


def mutants() -> tuple[Mutant, ...]:
    """Returns every rule that is not the default one, by switch; those of the quorum are in ``quorum_mutants``."""
    found: list[Mutant] = []
    for name in sorted(set(Switches.__struct_fields__) - set(QuorumRules.__struct_fields__)):
        default = getattr(Switches(), name)
        if isinstance(default, Enum):
            found += [(name, rule.value) for rule in type(default) if rule is not default]
        else:
            found.append((name, "off" if default else "on"))
    return tuple(found)

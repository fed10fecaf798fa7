"""The checks, one per file, in the order in which reports list them."""

from typing import Final

from emulator.verification.check import Check
from emulator.verification.checks import (
    c1_consumer_order,
    d1_acked_durable,
    d4_no_global_loss,
    d5_consumed_stable,
    d6_log_matching,
    d10_no_phantom,
    e1_log_agreement,
    h2_high_watermark_gate,
    h3_term_high_watermark,
    m1_members,
    m3_elr_only_under_min,
    m5_unclean_exclusion,
    m8_one_leader_per_epoch,
    m9_epoch_monotonic,
)

CHECKS: Final[tuple[Check, ...]] = (
    d1_acked_durable.CHECK,
    d4_no_global_loss.CHECK,
    d5_consumed_stable.CHECK,
    d6_log_matching.CHECK,
    d10_no_phantom.CHECK,
    c1_consumer_order.CHECK,
    m8_one_leader_per_epoch.CHECK,
    e1_log_agreement.CHECK,
    h2_high_watermark_gate.CHECK,
    h3_term_high_watermark.CHECK,
    m1_members.CHECK,
    m3_elr_only_under_min.CHECK,
    m5_unclean_exclusion.CHECK,
    m9_epoch_monotonic.CHECK,
)

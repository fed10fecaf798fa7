"""The models of ``docs/tla/Replication.tla``: rules, bounds, and the invariant that TLC must find broken."""

from enum import Enum
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core.switches import ERAS, switch_texts, with_switch


class Invariant(Enum):
    """Condition of every state, by its name in the module."""

    WELL_FORMED = "WellFormed"
    NO_LOSS = "NoLoss"
    READS_ARE_COMMITTED = "ReadsAreCommitted"


class Bounds(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """The constants of the module that make a model finite, and the size of the cluster.

    The defaults are the least in which most rules matter. ``max_unclean_shutdowns`` is below ``min_isr`` wherever
    KIP-966 promises that nothing is lost.
    """

    brokers: int = 2
    spares: int = 0
    min_isr: int = 2
    max_records: int = 1
    max_leader_epoch: int = 3
    max_partition_epoch: int = 5
    max_fences: int = 3
    max_elections: int = 0
    max_unclean_shutdowns: int = 0
    max_stops: int = 0
    max_min_isr_changes: int = 0
    max_reassignments: int = 0
    max_unclean_elections: int = 0
    max_feature_changes: int = 0
    max_requests: int = 3


class Model(NamedTuple):
    """Rules and bounds for TLC, and the expected result.

    Attributes:
        name: of the model.
        rules: switches of the emulator with their values, as text.
        bounds: of the model.
        broken: the invariant that TLC must find broken; ``None`` where all must hold in every state.
    """

    name: str
    rules: dict[str, str]
    bounds: Bounds
    broken: Invariant | None


def _holds(name: str, bounds: Bounds) -> Model:
    return Model(name, switch_texts(ERAS["kip-966"]), bounds, None)


def _breaks(rule: str, value: str, bounds: Bounds, broken: Invariant = Invariant.NO_LOSS) -> Model:
    switches = with_switch(ERAS["kip-966"], rule, value)
    return Model(f"{rule}={value}", switch_texts(switches), bounds, broken)


def _era(era: str, bounds: Bounds) -> Model:
    return Model(era, switch_texts(ERAS[era]), bounds, Invariant.NO_LOSS)


_ONE_UNCLEAN: Final = Bounds(max_unclean_shutdowns=1)
_THREE_BROKERS: Final = Bounds(brokers=3)
_RESTART: Final = Bounds(brokers=3, max_unclean_shutdowns=1, max_leader_epoch=2, max_partition_epoch=4, max_requests=1)
_REASSIGNMENT: Final = Bounds(
    brokers=3, spares=1, max_reassignments=1, max_fences=1, max_requests=1, max_partition_epoch=4
)
_NEW_MIN_ISR: Final = Bounds(min_isr=1, max_min_isr_changes=1)

MODELS: Final = (
    _holds("kip-966, one unclean shutdown", Bounds(max_unclean_shutdowns=1, max_stops=1)),
    _holds("kip-966, two records", Bounds(max_unclean_shutdowns=1, max_records=2)),
    _holds("kip-966, another min ISR", _NEW_MIN_ISR),
    _holds("kip-966, three brokers", Bounds(brokers=3, max_partition_epoch=4)),
    _holds("kip-966, an unclean election", Bounds(max_unclean_elections=1, max_unclean_shutdowns=1, max_fences=2)),
    _holds("kip-966, the feature goes and comes back", Bounds(max_feature_changes=2, max_fences=2)),
    _holds("kip-966, a reassignment", _REASSIGNMENT),
    _breaks("elr", "off", _ONE_UNCLEAN),
    _breaks("hw_requires_min_isr", "off", _THREE_BROKERS),
    _breaks("unclean_detection", "off", _ONE_UNCLEAN),
    _breaks("maximal_isr", "proposed", _THREE_BROKERS),
    _breaks("maximal_isr", "committed_only", _THREE_BROKERS),
    _breaks("truncation", "high_watermark", _THREE_BROKERS),
    _breaks("ap_partition_epoch_check", "off", _THREE_BROKERS),
    _breaks("ap_broker_epoch_check", "off", _RESTART),
    _breaks("clear_elr_on_min_isr_change", "off", Bounds(brokers=3, max_min_isr_changes=1)),
    _breaks(
        "truncate_before_hw",
        "off",
        Bounds(
            brokers=3,
            max_records=3,
            max_fences=1,
            max_elections=2,
            max_leader_epoch=4,
            max_partition_epoch=4,
            max_requests=0,
        ),
        Invariant.READS_ARE_COMMITTED,
    ),
    _breaks("roles_after_registration", "off", _ONE_UNCLEAN),
    _breaks(
        "progress_of_this_term",
        "off",
        Bounds(brokers=3, max_fences=0, max_elections=3, max_leader_epoch=4, max_partition_epoch=4, max_requests=0),
    ),
    _breaks("refusals_are_final", "off", Bounds(min_isr=1)),
    _breaks("answers_await_metadata", "off", _NEW_MIN_ISR),
    _breaks("untouched_logs_stay_proven", "off", Bounds(max_unclean_shutdowns=1, max_stops=2, max_fences=2)),
    _era("kip-966-text", _ONE_UNCLEAN),
    _era("kafka-4.2", _ONE_UNCLEAN),
    _era("kafka-3.9", _ONE_UNCLEAN),
)

"""What a check says when it fires, and whether that counts as a finding.

An *outcome* check is something that a user sees; a *rule* check restates a rule of the protocol and is judged only
where the switch of that rule is on. A loss within the guarantee means that the protocol is wrong; one outside of it is
what the run asked for, and is only counted.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

import msgspec

from emulator.core.switches import MaximalIsr, Switches
from emulator.core.types import TopicPartition


class CheckKind(Enum):
    """What a check is about."""

    OUTCOME = "outcome"
    CANDIDATE = "candidate"
    """D3: an electable replica lacks committed records; one more election makes it an outcome."""

    RULE = "rule"
    LIVENESS = "liveness"
    CRASH = "crash"
    """The core raised ``InvariantViolation``, or any other exception."""


class Guarantee(Enum):
    """Whether too much was broken for the promise to hold."""

    HOLDS = "holds"
    EXCEEDED = "exceeded"


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """One check that fired.

    Attributes:
        check_id: such as ``D1``.
        kind: of the check.
        partition: which it is about, if about one.
        guarantee: whether it had to hold.
        sentence: what is wrong.
        step: of the cluster, when it fired.
    """

    check_id: str
    kind: CheckKind
    partition: TopicPartition | None
    guarantee: Guarantee
    sentence: str
    step: int

    def __str__(self) -> str:
        return f"{self.check_id} at step {self.step}: {self.sentence}"


_RULES: Final[Mapping[str, Callable[[Switches], bool]]] = MappingProxyType(
    {
        "H2": lambda s: s.hw_requires_min_isr,
        "H4": lambda s: s.maximal_isr is MaximalIsr.ON and s.ap_partition_epoch_check and s.elr,
        "M2": lambda s: s.elr,
        "M3": lambda s: s.elr,
        "M4": lambda s: s.elr and s.ap_partition_epoch_check,
        "M5": lambda s: s.elr and s.unclean_detection and s.ap_broker_epoch_check,
        "M6": lambda s: s.elr,
        "M10": lambda s: s.ap_partition_epoch_check and s.ap_broker_epoch_check,
    }
)
"""Which switches a rule check restates; one that is not named here restates none and holds in every era."""


def is_promised(check_id: str, switches: Switches) -> bool:
    """Whether the rule that a check restates is in force."""
    rule = _RULES.get(check_id)
    return rule is None or rule(switches)


def is_finding(alarm: Alarm, switches: Switches) -> bool:
    """Whether an alarm means that the protocol is wrong."""
    return alarm.guarantee is Guarantee.HOLDS and (
        alarm.kind is not CheckKind.RULE or is_promised(alarm.check_id, switches)
    )

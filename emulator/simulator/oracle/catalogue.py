"""Every check of the oracle: what it is about, what it says, and the switches that it restates. The one table.

An *outcome* check is something that a user sees, and is judged in every era. A *rule* check restates a rule of the
protocol and is judged only where each switch that it names has the checked value; one that names none is judged in
every era. D3 stands between the two: one more election makes an outcome of it.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from emulator.core.switches import MaximalIsr, Switches, Truncation
from emulator.core.types import StrayCleanup
from emulator.simulator.oracle.finding import Alarm, CheckKind, Guarantee

CheckedValue: TypeAlias = bool | Enum | tuple[Enum, ...]
"""A value of a switch, or several of which each will do."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check.

    Attributes:
        kind: what it is about.
        statement: what must hold.
        switches: by name, the value that each must have for a rule check to be judged.
    """

    kind: CheckKind
    statement: str
    switches: Mapping[str, CheckedValue] = MappingProxyType({})


def _outcome(statement: str) -> Check:
    return Check(kind=CheckKind.OUTCOME, statement=statement)


def _rule(statement: str, **switches: CheckedValue) -> Check:
    return Check(kind=CheckKind.RULE, statement=statement, switches=MappingProxyType(switches))


def _liveness(statement: str, **switches: CheckedValue) -> Check:
    return Check(kind=CheckKind.LIVENESS, statement=statement, switches=MappingProxyType(switches))


CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "D1": _outcome("what was acknowledged with acks=all is on the settled leader"),
        "D2": _outcome("a settled leader's log reaches the true high watermark"),
        "D3": Check(kind=CheckKind.CANDIDATE, statement="a running candidate's log reaches the true high watermark"),
        "D4": _outcome("what was acknowledged is on one replica at least"),
        "D5": _outcome("what a consumer was given stays on every later settled leader"),
        "D6": _outcome("replicas agree below the smaller of their high watermarks"),
        "D7": _outcome("the same offset and leader epoch is the same batch, after the same one, on every log"),
        "D8": _rule(
            "epochs do not fall along a log, a leader appends in its own, and the epoch cache says so",
            truncation=Truncation.LEADER_EPOCH,
            truncation_sync=True,
            roles_after_registration=True,
        ),
        "D9": _rule("log start <= high watermark <= log end, and a log is one piece"),
        "D10": _outcome("everything stored or consumed was sent, with that content, to that partition"),
        "D11": _outcome("what certainly failed is in no log"),
        "D12": _outcome("a sequence number is once below the high watermark"),
        "D13": _outcome("a producer's batches are in the order of their sequence numbers"),
        "D14": _outcome("what was sent after an acknowledgement lies behind it"),
        "D15": _outcome("nobody truncates a committed record that it holds"),
        "D16": _outcome("a consumer is given committed records only, and none above the replica's high watermark"),
        "C1": _outcome("a consumer's offsets have no holes and no repeats between seeks"),
        "C2": _outcome("a reader of everything is given everything that was acknowledged"),
        "C3": _outcome("what a settled leader tells of its end, and what a consumer has reached, never goes back"),
        "H1": _rule("the high watermark is what the maximal ISR and the joiners hold, as learned in this leadership"),
        "H2": _rule("it moves only under an ISR of min ISR that the controller did commit", hw_requires_min_isr=True),
        "H3": _rule("it does not fall within a leadership"),
        "H4": _rule(
            "a settled leader with enough members reckons with every candidate of the controller's",
            elr=True,
            maximal_isr=MaximalIsr.ON,
            ap_partition_epoch_check=True,
        ),
        "H5": _rule(
            "the maximal ISR is the committed and the proposed one, and one proposal is under way",
            maximal_isr=MaximalIsr.ON,
        ),
        "M1": _rule("the ISR is a subset of the replicas and disjoint from the ELR, and the leader is in it"),
        "M2": _rule("leader and ISR are active", elr=True, cancel_requires_min_isr=True),
        "M3": _rule("ELR and last known ELR are empty while the ISR is large enough", elr=True),
        "M4": _rule("ISR and ELR keep min ISR members", elr=True, ap_partition_epoch_check=True),
        "M5": _rule(
            "who registered uncleanly is no candidate until it is let in anew",
            elr=True,
            unclean_detection=True,
            ap_broker_epoch_check=True,
        ),
        "M6": _rule("a leader comes from the ISR, else from the ELR, else uncleanly and alone", elr=True),
        "M7": _rule(
            "that a leader was elected uncleanly is on record, and it is alone, until it says it has recovered"
        ),
        "M8": _outcome("an epoch has one leader"),
        "M9": _rule("epochs rise with every change, the leader epoch with every leader"),
        "M10": _rule(
            "an accepted proposal comes from the leader, is up to date, and names live incarnations",
            ap_partition_epoch_check=True,
            ap_broker_epoch_check=True,
            roles_after_registration=True,
        ),
        "M11": _rule(
            "the ISR gains a member by a proposal or by an election from outside of it", cancel_requires_min_isr=True
        ),
        "M12": _rule("a broker epoch is new, and given only after the earlier session is over"),
        "M13": _rule("a broker's metadata is the fold of the log up to its offset, and its roles are those"),
        "M14": _outcome("one controller writes at a time, and every record has its own offset"),
        "M15": _rule(
            "a log is of the topic that metadata names, and a new topic starts from nothing",
            stray_cleanup=(StrayCleanup.DELETE, StrayCleanup.RENAME),
        ),
        "M16": _rule(
            "a reassignment ends with all that were added in sync, and leaves nobody else", elr_within_replicas=True
        ),
        "M17": _rule("the ELR is a subset of the replicas", elr_within_replicas=True),
        "M18": _rule(
            "nobody serves a partition before its uncleanly elected leader has recovered", recovering_gate=True
        ),
        "M19": _rule("a reassignment that is called off leaves min ISR members in sync", cancel_requires_min_isr=True),
        "L1": _liveness("brokers know all of the metadata"),
        "L2": _liveness("brokers run, and are unfenced"),
        "L3": _liveness("a partition has a leader, unless nobody may lead it"),
        "L4": _liveness("the ISR is all replicas, and nothing is proposed"),
        "L5": _liveness("every request is answered, or given up by its client"),
        "L6": _liveness("replicas are full copies, high watermarks at their ends, and a consumer reaches them"),
        "L7": _liveness(
            "no log lies where it is not assigned for longer than its grace, and none was deleted where it was",
            stray_cleanup=StrayCleanup.DELETE,
        ),
        "L8": _liveness("no reassignment is under way"),
        "L9": _liveness("nothing goes on changing"),
        "InvariantError": Check(kind=CheckKind.CRASH, statement="the core does not contradict itself"),
        "Exception": Check(kind=CheckKind.CRASH, statement="the core raises nothing"),
    }
)
"""By id."""


def is_promised(check_id: str, switches: Switches) -> bool:
    """Whether a run with these switches has the rules that a check restates."""
    return all(
        getattr(switches, name) in (value if isinstance(value, tuple) else (value,))
        for name, value in CHECKS[check_id].switches.items()
    )


def is_finding(alarm: Alarm, switches: Switches) -> bool:
    """Whether an alarm means that the protocol is wrong."""
    return alarm.guarantee is Guarantee.HOLDS and is_promised(alarm.check_id, switches)

"""Rules of the metadata quorum that can be switched off, and what Kafka's releases had of them.

As in ``core/switches.py``, each rule is read in exactly one place, and an era says only where it differs from the next
one. A rule is a field here, and a line in the last era that has not got it.
"""

from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace


class QuorumRules(msgspec.Struct, frozen=True, kw_only=True):
    """One frozen set of rules. The defaults are Kafka's KIPs to the letter, and Laststand's repairs."""

    pre_vote: bool = True
    """A voter asks whether it could win before it raises the epoch (KIP-996, Kafka 4.0)."""

    check_quorum: bool = True
    """A leader from which no majority has fetched for a while resigns (KAFKA-15489, Kafka 3.7)."""

    directory_ids: bool = True
    """A voter is a node and a directory: a replaced disk is no voter (KIP-853, Kafka 3.9 with ``kraft.version`` 1)."""

    commit_own_epoch: bool = True
    """A record counts as committed by its copies only with one of the leader's own epoch (KIP-595, KAFKA-12619)."""

    vote_is_durable: bool = True
    """Epoch and vote are synced before anything that depends on them is sent (KIP-595)."""

    vote_compares_logs: bool = True
    """A vote is granted only to a candidate whose log is no less up to date (KIP-595)."""

    one_vote_per_epoch: bool = True
    """A voter that has voted refuses every other candidate of that epoch (KIP-595)."""

    former_leader_resigns: bool = True
    """A leader that starts again leads no more in its epoch, because a record of it may be gone (KIP-595)."""

    follower_syncs_first: bool = True
    """A follower syncs what it fetched before its next fetch claims it (KAFKA-10533, Kafka 2.8)."""

    leader_syncs_first: bool = True
    """A leader counts its own log once it is synced.

    Laststand: Kafka counts it at the append and syncs in the same turn, which is too late for a single voter
    (``KafkaRaftClient.flushLeaderLog``).
    """

    start_syncs_log: bool = True
    """A node that starts syncs its log before it claims any of it.

    Laststand: Kafka takes what it reads for durable, though a process that was killed may have synced none of its last
    records (``KafkaRaftClient.initialize``); a loss of power after that takes them. Found by the simulator.
    """

    missing_state_stops: bool = True
    """A node with a log but without its file of epoch and vote does not start.

    Laststand: Kafka takes the epoch from the log and may vote again (``QuorumState.readElectionState``).
    """

    claim_follows_commit: bool = True
    """A state machine hears that it leads once it has every record below the epoch (KAFKA-15345, Kafka 3.6)."""

    committed_is_never_cut: bool = True
    """A follower whose leader lacks records that are committed stops instead of cutting them (KAFKA-12460)."""

    change_follows_commit: bool = True
    """Voters change only once the leader has committed a record of its epoch, and the change before (KIP-853)."""

    stray_claims_are_unknown: bool = True
    """A node that others take for the leader of an epoch, and that is not, takes the leader for unknown.

    Laststand: Kafka stops the process, again at each start until another leader is elected
    (``KafkaRaftClient.maybeTransition``): a replaced disk of a node that led.
    """


_LASTSTAND: Final = QuorumRules()
_KAFKA_4_2: Final = replace(
    _LASTSTAND,
    leader_syncs_first=False,
    start_syncs_log=False,
    missing_state_stops=False,
    stray_claims_are_unknown=False,
)
_KAFKA_3_9: Final = replace(_KAFKA_4_2, pre_vote=False)
_KAFKA_3_8: Final = replace(_KAFKA_3_9, directory_ids=False)
_KAFKA_3_6: Final = replace(_KAFKA_3_8, check_quorum=False)
_KAFKA_3_5: Final = replace(_KAFKA_3_6, claim_follows_commit=False)

QUORUM_ERAS: Final = MappingProxyType(
    {
        "kafka-3.5": _KAFKA_3_5,
        "kafka-3.6": _KAFKA_3_6,
        "kafka-3.8": _KAFKA_3_8,
        "kafka-3.9": _KAFKA_3_9,
        "kafka-4.2": _KAFKA_4_2,
        "kip-966": _LASTSTAND,
    }
)
"""Rules of Kafka's controllers, by the name of the last release that has just these."""

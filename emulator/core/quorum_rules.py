"""Rules of the metadata quorum that can be switched off, each read in one place; ``switches.py`` has the eras."""

import msgspec


class QuorumRules(msgspec.Struct, frozen=True, kw_only=True):
    """One frozen set of rules. The defaults are Kafka's KIPs to the letter, with Laststand's repairs.

    The second paragraph of each rule's docstring names its origin and source.
    """

    pre_vote: bool = True
    """A voter asks whether it could win before it raises the epoch (KIP-996, Kafka 4.0): Q20.

    KIP-996: Kafka 4.0, ``KafkaRaftClient.transitionToProspective``.
    """

    check_quorum: bool = True
    """A leader resigns if no majority of the voters has fetched from it for a while (KAFKA-15489, Kafka 3.7): Q10.

    Kafka 3.7: KAFKA-15489, ``LeaderState.timeUntilCheckQuorumExpires``.
    """

    directory_ids: bool = True
    """A voter is a node and a directory: a replaced disk is no voter (KIP-853, ``kraft.version`` 1): Q03.

    KIP-853: Kafka 3.9 for clusters that are formatted with it, and since 4.1 for others; static voters have no
    directory ids.
    """

    commit_own_epoch: bool = True
    """Records of earlier epochs are committed only together with a record of the leader's own epoch: Q06.

    KIP-595: KAFKA-12619, ``LeaderState.maybeUpdateHighWatermark``.
    """

    vote_is_durable: bool = True
    """Epoch and vote are synced to disk before any message that depends on them is sent: Q02.

    KIP-595: ``FileQuorumStateStore.writeElectionState``.
    """

    vote_compares_logs: bool = True
    """A vote is granted only to a candidate whose log is at least as up to date as the voter's.

    KIP-595: ``QuorumState.canGrantVote``.
    """

    one_vote_per_epoch: bool = True
    """A voter that has voted refuses every other candidate of that epoch: Q01.

    KIP-595: ``UnattachedState.canGrantVote``.
    """

    former_leader_resigns: bool = True
    """A leader that restarts does not lead its former epoch again, because a record of that epoch may be gone.

    KIP-595: ``QuorumState.initialize``.
    """

    follower_syncs_first: bool = True
    """A voter syncs fetched records before it reports them in its next Fetch or Vote request: Q08.

    Kafka 2.8: KAFKA-10533, ``KafkaRaftClient.appendAsFollower``.
    """

    leader_syncs_first: bool = True
    """A leader counts its own log for the high watermark only once that log is synced: Q07.

    Laststand: Kafka counts it at the append and syncs it later in the same turn, too late for a single voter
    (``KafkaRaftClient.flushLeaderLog``).
    """

    start_syncs_log: bool = True
    """A node that starts syncs its log before it reports any record of it.

    Laststand: Kafka takes all that it reads for durable (``KafkaRaftClient.initialize``), although a killed process may
    have left records that were never synced, and a power loss removes them. Found by the simulator.
    """

    missing_state_stops: bool = True
    """A node with a log but without its file of epoch and vote does not start: Q01.

    Laststand: Kafka takes the epoch from the log and may vote again (``QuorumState.readElectionState``).
    """

    claim_follows_commit: bool = True
    """The state machine is notified that its node leads only once it has every record of earlier epochs: Q18.

    Kafka 3.6: KAFKA-15345, ``KafkaRaftClient.maybeFireLeaderChange``.
    """

    committed_is_never_cut: bool = True
    """A follower whose leader lacks committed records stops instead of truncating them.

    Kafka 2.8: KAFKA-12460, ``KafkaMetadataLog.truncateToEndOffset``.
    """

    change_follows_commit: bool = True
    """Voters change only once the leader has committed a record of its epoch and the previous change: Q28.

    KIP-853: ``AddVoterHandler``.
    """

    stray_claims_are_unknown: bool = True
    """A node that another node names as leader of an epoch that it does not lead takes the leader for unknown: Q39.

    Laststand: Kafka stops the process, and does so at each start until another node leads
    (``KafkaRaftClient.maybeTransition``).
    """

    known_leader_first: bool = True
    """A restarted node follows the leader that its state names, though its state has a vote for itself, too.

    Laststand: since 4.0 Kafka stores the vote beside the leader, and starts as a candidate of that epoch again
    (``QuorumState.initialize``). If the log has a record of that epoch, its Vote request is invalid. The process stops
    if the voter that refuses knows no leader, and does so at each start until the epoch is over. Found by the
    simulator.
    """

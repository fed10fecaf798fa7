"""Rules of the metadata quorum that can be switched off, each read in one place; ``switches.py`` has the eras."""

import msgspec


class QuorumRules(msgspec.Struct, frozen=True, kw_only=True):
    """One frozen set of rules. The defaults are Kafka's KIPs to the letter, and Laststand's repairs.

    The second paragraph of each rule's docstring names its origin and source.
    """

    pre_vote: bool = True
    """A voter asks whether it could win before it raises the epoch (KIP-996, Kafka 4.0): Q20.

    KIP-996: Kafka 4.0, ``KafkaRaftClient.transitionToProspective``.
    """

    check_quorum: bool = True
    """A leader from which no majority has fetched for a while resigns (KAFKA-15489, Kafka 3.7): Q10.

    Kafka 3.7: KAFKA-15489, ``LeaderState.timeUntilCheckQuorumExpires``.
    """

    directory_ids: bool = True
    """A voter is a node and a directory: a replaced disk is no voter (KIP-853, ``kraft.version`` 1): Q03.

    KIP-853: Kafka 3.9 for clusters that are formatted so, and since 4.1 for others; static voters have none.
    """

    commit_own_epoch: bool = True
    """A record counts as committed by its copies only with one of the leader's own epoch: Q06.

    KIP-595: KAFKA-12619, ``LeaderState.maybeUpdateHighWatermark``.
    """

    vote_is_durable: bool = True
    """Epoch and vote are synced before anything that depends on them is sent: Q02.

    KIP-595: ``FileQuorumStateStore.writeElectionState``.
    """

    vote_compares_logs: bool = True
    """A vote is granted only to a candidate whose log is no less up to date.

    KIP-595: ``QuorumState.canGrantVote``.
    """

    one_vote_per_epoch: bool = True
    """A voter that has voted refuses every other candidate of that epoch: Q01.

    KIP-595: ``UnattachedState.canGrantVote``.
    """

    former_leader_resigns: bool = True
    """A leader that starts again leads no more in its epoch, because a record of it may be gone.

    KIP-595: ``QuorumState.initialize``.
    """

    follower_syncs_first: bool = True
    """A voter syncs what it fetched before its next fetch or vote request claims it: Q08.

    Kafka 2.8: KAFKA-10533, ``KafkaRaftClient.appendAsFollower``.
    """

    leader_syncs_first: bool = True
    """A leader counts its own log once it is synced: Q07.

    Laststand: Kafka counts it at the append and syncs in the same turn, too late for a single voter
    (``KafkaRaftClient.flushLeaderLog``).
    """

    start_syncs_log: bool = True
    """A node that starts syncs its log before it claims any of it.

    Laststand: Kafka takes what it reads for durable (``KafkaRaftClient.initialize``), though a process that was killed
    may have synced none of its last records, and a loss of power takes them. Found by the simulator.
    """

    missing_state_stops: bool = True
    """A node with a log but without its file of epoch and vote does not start: Q01.

    Laststand: Kafka takes the epoch from the log and may vote again (``QuorumState.readElectionState``).
    """

    claim_follows_commit: bool = True
    """A state machine hears that it leads once it has every record below the epoch: Q18.

    Kafka 3.6: KAFKA-15345, ``KafkaRaftClient.maybeFireLeaderChange``.
    """

    committed_is_never_cut: bool = True
    """A follower whose leader lacks records that are committed stops instead of cutting them.

    Kafka 2.8: KAFKA-12460, ``KafkaMetadataLog.truncateToEndOffset``.
    """

    change_follows_commit: bool = True
    """Voters change only once the leader has committed a record of its epoch, and the change before: Q28.

    KIP-853: ``AddVoterHandler``.
    """

    stray_claims_are_unknown: bool = True
    """A node that others take for the leader of an epoch, and that is not, takes the leader for unknown: Q39.

    Laststand: Kafka stops the process, again at each start until another leads (``KafkaRaftClient.maybeTransition``).
    """

    known_leader_first: bool = True
    """A node that voted for itself and followed another leader of that epoch, follows it again when it starts.

    Laststand: Kafka keeps the vote beside the leader since 4.0, and starts as candidate of that epoch again
    (``QuorumState.initialize``). With a record of the epoch in its log its request is invalid: the process stops where
    whoever refuses it knows of no leader, at each start until the epoch is over. Found by the simulator.
    """

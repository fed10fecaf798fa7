"""Configuration of one node of the quorum, by Kafka's names without ``controller.quorum.``."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import msgspec

from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey, VersionRange, Voter, VoterSet
from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.core.types import NodeId
from laststand.emulator.core.uuid_text import uuid_text

CAUGHT_UP_MS: Final = 60 * 60 * 1000
"""Within which a replica must have fetched to count as caught up when it is added (``LeaderState``): an hour."""

_FETCH_WAIT_MAX_MS: Final = 500
"""For which a leader keeps a fetch at most (``KafkaRaftClient``), where the fetch timeout is long enough for that."""

OBSERVER_SESSION_MS: Final = 5 * 60 * 1000
"""After which an observer that does not fetch is left out of DescribeQuorum."""


def initial_directory_id(cluster_id: str, node_id: NodeId) -> DirectoryId:
    """Returns the directory id of a controller's first disk, which every node can compute.

    Kafka's ``format`` draws them, and is given those of all controllers (``--initial-controllers``).
    """
    return DirectoryId(uuid_text(blake2b(f"{cluster_id}/{node_id}".encode(), digest_size=16).digest()))


def formatted(keys: Iterable[ReplicaKey], rules: QuorumRules) -> tuple[VoterSet, int]:
    """Returns the voters and the ``kraft.version`` that ``format`` writes; static voters have no directory ids."""
    if rules.directory_ids:
        return VoterSet.of(Voter(key=key) for key in keys), 1
    return VoterSet.of(Voter(key=ReplicaKey(key.node_id)) for key in keys), 0


def settings_of(
    properties: NodeProperties,
    *,
    key: ReplicaKey,
    cluster_id: str,
    rules: QuorumRules,
    initial: Iterable[ReplicaKey],
) -> "QuorumSettings":
    """Returns the settings of one of several controllers.

    Args:
        properties: has ``controller.quorum.*``.
        key: of the node, with its disk.
        cluster_id: of its cluster.
        rules: the rules in force.
        initial: all controllers with their first disks, as ``format`` was given them.
    """
    voters, kraft_version = formatted(initial, rules)
    is_first = key.node_id == min(voters.node_ids)
    fetch_timeout_ms = properties.controller_quorum_fetch_timeout_ms
    return QuorumSettings(
        key=key,
        cluster_id=cluster_id,
        rules=rules,
        bootstrap_voters=voters,
        kraft_version=kraft_version,
        election_timeout_ms=properties.controller_quorum_election_timeout_ms,
        election_jitter_ms=properties.controller_quorum_election_timeout_ms,
        fetch_timeout_ms=fetch_timeout_ms,
        fetch_wait_ms=min(_FETCH_WAIT_MAX_MS, fetch_timeout_ms // 4),
        request_timeout_ms=properties.controller_quorum_request_timeout_ms,
        retry_backoff_ms=properties.controller_quorum_retry_backoff_ms,
        election_backoff_max_ms=properties.controller_quorum_election_backoff_max_ms,
        append_linger_ms=properties.controller_quorum_append_linger_ms,
        is_first=is_first,
    )


class QuorumSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that a process reads once.

    Attributes:
        key: this replica.
        cluster_id: of its cluster.
        rules: which may be switched off.
        bootstrap_voters: the static voters, or those that ``format`` wrote: in force until the log has others.
        bootstrap_servers: nodes to ask for the leader; the bootstrap voters where it is empty.
        kraft_version: as formatted; 0 has static voters.
        can_become_voter: whether it is an observer that may be added as a voter, and so has to sync what it fetches.
        auto_join: whether such an observer itself asks to be added (KIP-1186).
        listener: this node's address.
        versions: supported versions of ``kraft.version``.
        election_timeout_ms: the least time without a leader before an election.
        election_jitter_ms: upper bound (exclusive) of the random time that is added to it.
        fetch_timeout_ms: after which a follower gives its leader up.
        request_timeout_ms: after which a request counts as failed.
        retry_backoff_ms: pause after a failed request.
        election_backoff_max_ms: the longest time that a successor waits after a leader's resignation.
        stop_timeout_ms: the longest that an orderly stop waits for another leader.
        is_first: whether it becomes a candidate at once, without the election timeout, if no leader was ever elected.
        append_linger_ms: for which records are collected before they are appended.
        fetch_wait_ms: how long the leader may hold a fetch that has nothing new.
        fetch_batches_max: most batches in one response.
        snapshot_chunk_bytes: most bytes of a snapshot in one response.
    """

    key: ReplicaKey
    cluster_id: str
    rules: QuorumRules = QuorumRules()
    bootstrap_voters: VoterSet = VoterSet()
    bootstrap_servers: tuple[NodeId, ...] = ()
    kraft_version: int = 1
    can_become_voter: bool = True
    auto_join: bool = False
    listener: str = ""
    versions: VersionRange = VersionRange()
    election_timeout_ms: int = 1000
    election_jitter_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    election_backoff_max_ms: int = 1000
    stop_timeout_ms: int = 5000
    is_first: bool = False
    append_linger_ms: int = 25
    fetch_wait_ms: int = 500
    fetch_batches_max: int = 1000
    snapshot_chunk_bytes: int = 1 << 20

    @property
    def check_quorum_timeout_ms(self) -> int:
        """After which a leader without a majority of fetches resigns."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_quorum_interval_ms(self) -> int:
        """Time between two rounds of BeginQuorumEpoch; voters that have fetched since the last round get none."""
        return self.fetch_timeout_ms // 2

    @property
    def servers(self) -> tuple[NodeId, ...]:
        """Other nodes that may be asked for the leader."""
        servers = self.bootstrap_servers or self.bootstrap_voters.node_ids
        return tuple(node_id for node_id in servers if node_id != self.key.node_id)

    @property
    def voter(self) -> Voter:
        """This replica as a voters record names it."""
        return Voter(key=self.key, listener=self.listener, versions=self.versions)

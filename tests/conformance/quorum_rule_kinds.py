"""Vectors of the quorum's pure rules, and of the file ``quorum-state``."""

import struct
from collections.abc import Mapping
from typing import Any, Final

from laststand.emulator.core.errors import InvariantError, StorageError
from laststand.emulator.core.quorum.batches import LogPosition
from laststand.emulator.core.quorum.effects import Election
from laststand.emulator.core.quorum.following import CommittedRecordsMissing, cut_offset
from laststand.emulator.core.quorum.metadata_log import Comparison, MetadataLog
from laststand.emulator.core.quorum.tally import VoteTally
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey, Voter, VoterSet
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId
from laststand.emulator.core.uuid_text import uuid_bytes, uuid_text
from laststand.emulator.storage.filesystem import read_file
from laststand.emulator.storage.quorum_state import (
    UnknownVersionError,
    quorum_state_path,
    read_quorum_state,
    write_quorum_state,
)
from tests.conformance.harness import Fields, Handler, Vector, mismatches
from tests.conformance.quorum_world import batches_of, parse_key, position_of, voter_set
from tests.conformance.storage_kinds import write_file
from tests.memory_filesystem import MemoryFileSystem

_DIRECTORY: Final = "/log"
_UUID: Final = struct.Struct(">QQ")
_MOST_SIGNIFICANT: Final = 0x5000
"""Of the UUID of directory ``dN``, whose other half is N."""


def run_tally(vector: Vector) -> list[str]:
    """Answers of voters in order: ``g1`` granted, ``r2`` refused."""
    tally = VoteTally(NodeId(number) for number in range(1, vector.event["voters"] + 1))
    try:
        for word in vector.event["votes"].split():
            tally.record(NodeId(int(word[1:])), is_granted=word[0] == "g")
    except InvariantError:
        return mismatches(vector.expect, {"refused": "IllegalArgumentException"})
    return mismatches(vector.expect, {"won": tally.is_won, "lost": tally.is_lost})


def run_voter_set(vector: Vector) -> list[str]:
    """An operation on a set, or a question about it."""
    voters = _voters(vector.event["set"])
    operation, _, rest = vector.event["operation"].partition(" ")
    result: VoterSet | bool | None
    match operation:
        case "add":
            result = voters.with_added(Voter(key=parse_key(rest)))
        case "remove":
            result = voters.with_removed(parse_key(rest))
        case "update":
            result = voters.with_updated(Voter(key=parse_key(rest)))
        case "overlap":
            result = voters.has_overlapping_majority(_voters(rest))
        case "is-voter":
            result = voters.has_voter(parse_key(rest))
        case "is-only-voter":
            result = voters.has_only(parse_key(rest))
        case unknown:
            return [f"operation {unknown} is not known"]
    shown = " ".join(map(str, result.keys)) if isinstance(result, VoterSet) else result
    return mismatches(vector.expect, {"result": shown})


def _voters(text: str) -> VoterSet:
    return voter_set(parse_key(word) for word in text.split())


def run_log_compare(vector: Vector) -> list[str]:
    """The leader's check of a fetch, the follower's cut, and the comparison of a vote."""
    event = vector.event
    match event["type"]:
        case "validate_fetch":
            asked = LogPosition(LeaderEpoch(event["last_epoch"]), MetadataOffset(event["offset"]))
            verdict, position = _log(event).compare(asked)
            shown: dict[str, Any] = {"kind": verdict.name}
            if verdict is not Comparison.VALID:
                shown |= {"epoch": position.leader_epoch, "end_offset": position.end_offset}
            return mismatches(vector.expect, shown)
        case "truncate":
            return mismatches(vector.expect, _truncate(event))
        case "up_to_date":
            candidate, voter = position_of(_named(event["candidate"])), position_of(_named(event["voter"]))
            return mismatches(vector.expect, {"up_to_date": candidate >= voter})
        case unknown:
            return [f"event {unknown} is not known"]


def _named(fields: Fields) -> Fields:
    return {"epoch": fields["last_epoch"], "end_offset": fields["end_offset"]}


def _log(event: Fields) -> MetadataLog:
    pairs = (word.split("x") for word in event["log"].split())
    batches = batches_of((int(epoch), int(records)) for epoch, records in pairs)
    return MetadataLog(bootstrap_voters=VoterSet(), bootstrap_version=0, batches=batches)


def _truncate(event: Fields) -> Fields:
    log = _log(event)
    diverging = LogPosition(LeaderEpoch(event["diverging_epoch"]), MetadataOffset(event["end_offset"]))
    try:
        offset = cut_offset(log, diverging, high_watermark=event.get("high_watermark"))
    except CommittedRecordsMissing:
        return {"refused": "IllegalArgumentException"}
    log.truncate(offset)
    return {"truncated_to": offset, "log_end_offset": log.end_offset}


# --- quorum-state -----------------------------------------------------------------------------------------------------


def run_quorum_state_file(vector: Vector) -> list[str]:
    """Reading and writing of the file."""
    filesystem = MemoryFileSystem()
    filesystem.make_directory(_DIRECTORY)
    event = vector.event
    if event["type"] == "read":
        if event["file"] is not None:
            write_file(filesystem, quorum_state_path(_DIRECTORY), event["file"].encode())
        return mismatches(vector.expect, _read(filesystem))
    election = _election(event["election"])
    voters = [NodeId(each) for each in event.get("voters", ())]
    write_quorum_state(filesystem, _DIRECTORY, election, kraft_version=event["kraft_version"], voters=voters)
    observed = {
        "file": read_file(filesystem, quorum_state_path(_DIRECTORY)).decode(),
        "read_back": _read(filesystem)["election"],
        "temporary_file_left": filesystem.exists(quorum_state_path(_DIRECTORY) + ".tmp"),
    }
    return mismatches(vector.expect, observed)


def _read(filesystem: MemoryFileSystem) -> dict[str, Any]:
    try:
        election = read_quorum_state(filesystem, _DIRECTORY)
    except UnknownVersionError:
        return {"refused": "IllegalStateException"}
    except StorageError:
        return {"refused": "UncheckedIOException"}
    if election is None:
        return {"election": None}
    voted = election.voted
    shown = {
        "epoch": election.leader_epoch,
        "leader": election.leader_id,
        "voted": None if voted is None else {"id": voted.node_id, "directory": _short(voted.directory_id)},
    }
    return {"election": shown}


def _election(fields: Fields) -> Election:
    voted = fields["voted"]
    return Election(
        leader_epoch=LeaderEpoch(fields["epoch"]),
        leader_id=fields["leader"],
        voted=None if voted is None else ReplicaKey(NodeId(voted["id"]), _long(voted["directory"])),
    )


def _long(name: str | None) -> DirectoryId | None:
    return None if name is None else DirectoryId(uuid_text(_UUID.pack(_MOST_SIGNIFICANT, int(name[1:]))))


def _short(directory_id: DirectoryId | None) -> str | None:
    return None if directory_id is None else f"d{_UUID.unpack(uuid_bytes(directory_id))[1]}"


KINDS: Final[Mapping[str, Handler]] = {
    "tally": run_tally,
    "voter-set": run_voter_set,
    "log-compare": run_log_compare,
    "quorum-state-file": run_quorum_state_file,
}

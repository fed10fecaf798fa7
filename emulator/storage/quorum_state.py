"""``quorum-state``: epoch, leader and vote of a node of the metadata quorum (Kafka's ``FileQuorumStateStore``).

One line of JSON. Version 0, of static voters, names nobody's directory: after a restart any disk of the node that was
voted for counts. Version 1 has it::

    {"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"AAAAAAAAUAAAAAAAAAAAAQ","data_version":1}
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.quorum.effects import Election
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.types import LeaderEpoch, NodeId
from laststand.emulator.storage.filesystem import FileSystem, read_file, write_atomically

QUORUM_STATE: Final = "quorum-state"

_NOBODY: Final = -1
_NO_DIRECTORY: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_VERSION_FIELD: Final = "data_version"


class UnknownVersionError(StorageError):
    """The file was written by a release that this program does not know."""


class _Version(msgspec.Struct, frozen=True):
    data_version: int


class _Voter(msgspec.Struct, frozen=True, rename="camel"):
    voter_id: int


class _Static(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    cluster_id: str = ""
    leader_id: int
    leader_epoch: int
    voted_id: int = _NOBODY
    applied_offset: int = 0
    current_voters: tuple[_Voter, ...] | None = None
    data_version: int = msgspec.field(default=0, name=_VERSION_FIELD)


class _Dynamic(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    leader_id: int
    leader_epoch: int
    voted_id: int = _NOBODY
    voted_directory_id: str = _NO_DIRECTORY
    data_version: int = msgspec.field(default=1, name=_VERSION_FIELD)


def quorum_state_path(directory: str) -> str:
    """Returns the file's path in the directory of the metadata log."""
    return f"{directory}/{QUORUM_STATE}"


def read_quorum_state(filesystem: FileSystem, directory: str) -> Election | None:
    """Returns the content of the file; ``None`` if it is missing.

    Raises:
        UnknownVersionError: of a later release.
        StorageError: it cannot be read, or is torn: then the vote is unknown.
    """
    path = quorum_state_path(directory)
    if not filesystem.exists(path):
        return None
    return parse_quorum_state(read_file(filesystem, path), path=path)


def parse_quorum_state(content: bytes, *, path: str) -> Election:
    """Returns the values in a file's content.

    Args:
        content: of the file.
        path: of the file, for the errors, which are those of ``read_quorum_state``.
    """
    try:
        version = msgspec.json.decode(content, type=_Version).data_version
        if version not in (0, 1):
            raise UnknownVersionError(path=path, reason=f"version {version} is none of 0 and 1")
        if version == 0:
            static = msgspec.json.decode(content, type=_Static)
            return _election(static.leader_epoch, static.leader_id, static.voted_id, None)
        state = msgspec.json.decode(content, type=_Dynamic)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StorageError(path=path, reason=str(error)) from error
    directory_id = None if state.voted_directory_id == _NO_DIRECTORY else DirectoryId(state.voted_directory_id)
    return _election(state.leader_epoch, state.leader_id, state.voted_id, directory_id)


def _election(leader_epoch: int, leader_id: int, voted_id: int, directory_id: DirectoryId | None) -> Election:
    return Election(
        leader_epoch=LeaderEpoch(leader_epoch),
        leader_id=None if leader_id == _NOBODY else NodeId(leader_id),
        voted=None if voted_id == _NOBODY else ReplicaKey(NodeId(voted_id), directory_id),
    )


def write_quorum_state(
    filesystem: FileSystem, directory: str, election: Election, *, kraft_version: int, voters: Iterable[NodeId] = ()
) -> None:
    """Replaces the file, durably with its name.

    Args:
        filesystem: the file system of the file.
        directory: of the metadata log.
        election: to be written.
        kraft_version: decides on the file's version.
        voters: that version 0 lists.

    Raises:
        StorageError: the write failed; the disk has the previous file, or this one.
    """
    leader_id = _NOBODY if election.leader_id is None else election.leader_id
    voted_id = _NOBODY if election.voted is None else election.voted.node_id
    content: _Static | _Dynamic
    if kraft_version == 0:
        content = _Static(
            leader_id=leader_id,
            leader_epoch=election.leader_epoch,
            voted_id=voted_id,
            current_voters=tuple(_Voter(voter_id) for voter_id in voters),
        )
    else:
        directory_id = None if election.voted is None else election.voted.directory_id
        content = _Dynamic(
            leader_id=leader_id,
            leader_epoch=election.leader_epoch,
            voted_id=voted_id,
            voted_directory_id=directory_id or _NO_DIRECTORY,
        )
    write_atomically(filesystem, quorum_state_path(directory), msgspec.json.encode(content))

"""The file of epoch and vote over a loss of power; its forms are facts of Kafka (tests/conformance)."""

import pytest

from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.quorum.effects import Election
from laststand.emulator.core.quorum.voter_set import ReplicaKey
from laststand.emulator.core.types import LeaderEpoch, NodeId
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.quorum_state import quorum_state_path, read_quorum_state, write_quorum_state
from tests.memory_filesystem import MemoryFileSystem

_DIRECTORY = "/log"


def _election(epoch: int) -> Election:
    return Election(leader_epoch=LeaderEpoch(epoch), voted=ReplicaKey(NodeId(2)))


def test_the_last_election_is_read_back() -> None:
    filesystem = MemoryFileSystem()
    filesystem.make_directory(_DIRECTORY)
    for epoch in (3, 4):
        write_quorum_state(filesystem, _DIRECTORY, _election(epoch), kraft_version=1)

    assert read_quorum_state(filesystem, _DIRECTORY) == _election(4)


@pytest.mark.parametrize("content", [b"", b"{", b'{"data_version":1}', b"\xff"])
def test_a_file_that_is_not_whole_is_no_missing_file(content: bytes) -> None:
    filesystem = MemoryFileSystem()
    filesystem.make_directory(_DIRECTORY)
    file = filesystem.open(quorum_state_path(_DIRECTORY), OpenMode.APPEND)
    file.append((content,))
    file.close()

    with pytest.raises(StorageError):
        read_quorum_state(filesystem, _DIRECTORY)

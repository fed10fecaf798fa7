"""The checkpoint with which a metadata log of dynamic voters begins."""

from laststand.emulator.core.quorum.batches import KRaftVersion, KRaftVoters
from laststand.emulator.core.quorum.settings import initial_directory_id
from laststand.emulator.core.quorum.voter_set import ReplicaKey, Voter, VoterSet
from laststand.emulator.core.types import NodeId
from laststand.emulator.kafka.first_checkpoint import first_checkpoint
from laststand.emulator.storage.batch_scan import BatchValidation, BytesFile, ScanEnd, scan_batches
from laststand.emulator.storage.control_records import decode_control
from laststand.emulator.storage.record_codec import read_records
from laststand.emulator.storage.value_batch import build_value_batch

VOTERS = VoterSet.of(
    Voter(key=ReplicaKey(node_id, initial_directory_id("some", node_id)), listener=f"node-{node_id}:9093")
    for node_id in map(NodeId, (100, 101, 102))
)
HEADER = bytes.fromhex("00000003")
FOOTER = bytes.fromhex("00000004")


def test_it_names_version_and_voters_between_header_and_footer() -> None:
    content = first_checkpoint(VOTERS, timestamp_ms=7)
    scan = scan_batches(BytesFile(content), check=BatchValidation.CRC)
    assert (scan.end, [batch.base_offset for batch in scan.batches]) == (ScanEnd.SILENT, [0, 3])
    assert all(batch.is_control and batch.leader_epoch == 0 for batch in scan.batches)
    head, version, voters = read_records(content[: scan.positions[1]])
    assert head.key == HEADER
    assert decode_control(version.key or b"", version.value or b"") == KRaftVersion(level=1)
    assert decode_control(voters.key or b"", voters.value or b"") == KRaftVoters(voters=VOTERS)
    [footer] = read_records(content[scan.positions[1] :])
    assert footer.key == FOOTER


def test_bootstrap_records_keep_their_place_before_the_footer() -> None:
    values = build_value_batch(
        [b"one", b"two"], timestamp_ms=7, producer_id=None, producer_epoch=None, base_sequence=None
    )
    content = first_checkpoint(VOTERS, bootstrap=values, timestamp_ms=7)
    scan = scan_batches(BytesFile(content), check=BatchValidation.CRC)
    assert [(batch.base_offset, batch.is_control) for batch in scan.batches] == [(0, True), (3, False), (5, True)]
    found = read_records(content[scan.positions[1] : scan.positions[2]])
    assert [record.value for record in found] == [b"one", b"two"]


def test_a_checkpoint_without_voters_gives_its_records_alone() -> None:
    first = first_checkpoint(VOTERS, timestamp_ms=7)
    assert first_checkpoint(VOTERS, bootstrap=first, timestamp_ms=7) == first

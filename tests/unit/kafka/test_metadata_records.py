"""Records as Apache Kafka 4.2.0 wrote them into its metadata log."""

import pytest

from laststand.emulator.core import records
from laststand.emulator.core.messages import FeatureRange
from laststand.emulator.core.types import BrokerEpoch, BrokerId, ConfigResource, IncarnationId, NodeId, TopicId
from laststand.emulator.kafka.metadata_records import MetadataRecordDecoder
from laststand.emulator.storage.fields import FieldError

_FEATURES = (
    "080e67726f75702e76657273696f6e00000001000e6b726166742e76657273696f6e0000000100116d657461646174612e76657273696f6e"
    "0007001d000e73686172652e76657273696f6e00000001001073747265616d732e76657273696f6e0000000100147472616e73616374696f"
    "6e2e76657273696f6e000000020021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e0000000100"
)
_REGISTRATION = (
    "0100030000000100d2e7f32330f84ad4b26fc9b9ba50f91e000000000000000b020a504c41494e544558540a6c6f63616c686f737499210000"
    "00" + _FEATURES + "0001000100110286055bc5009efceb3b56796b24a88b2d"
)
_TOPIC_ID = "86055bc5009efceb3b56796b24a88b2d"
_TOPIC = "010200" + "076f7264657273" + _TOPIC_ID + "00"


def _decode(text: str) -> object:
    return MetadataRecordDecoder().decode(bytes.fromhex(text))


@pytest.mark.parametrize(
    ("text", "record"),
    [
        (
            "010c00116d657461646174612e76657273696f6e001d00",
            records.FeatureLevelRecord(name="metadata.version", feature_level=29),
        ),
        (
            "0104000401146d696e2e696e73796e632e7265706c69636173023100",
            records.ConfigRecord(
                resource=ConfigResource.BROKER, resource_name="", name="min.insync.replicas", value="1"
            ),
        ),
        (
            _REGISTRATION,
            records.RegisterBrokerRecord(
                broker_id=BrokerId(NodeId(1)),
                incarnation_id=IncarnationId("0ufzIzD4StSyb8m5ulD5Hg"),
                broker_epoch=BrokerEpoch(11),
                log_dirs=("hgVbxQCe_Os7VnlrJKiLLQ",),
                fenced=True,
                features=tuple(
                    FeatureRange(name=name, min_supported_version=low, max_supported_version=high)
                    for name, low, high in (
                        ("group.version", 0, 1),
                        ("kraft.version", 0, 1),
                        ("metadata.version", 7, 29),
                        ("share.version", 0, 1),
                        ("streams.version", 0, 1),
                        ("transaction.version", 0, 2),
                        ("eligible.leader.replicas.version", 0, 1),
                    )
                ),
            ),
        ),
        (
            "011100" + "00000001" + "000000000000000b" + "010001ff",
            records.BrokerRegistrationChangeRecord(
                broker_id=BrokerId(NodeId(1)), broker_epoch=BrokerEpoch(11), fenced=False
            ),
        ),
        ("01170001001212426f6f747374726170207265636f726473", records.BeginTransactionRecord(name="Bootstrap records")),
        ("01180000", records.EndTransactionRecord()),
    ],
)
def test_a_record_is_decoded(text: str, record: object) -> None:
    assert _decode(text) == record


def test_a_topic_is_named_where_its_elr_is_cleared() -> None:
    decoder = MetadataRecordDecoder()
    topic = decoder.decode(bytes.fromhex(_TOPIC))
    assert topic == records.TopicRecord(name="orders", topic_id=TopicId("hgVbxQCe_Os7VnlrJKiLLQ"))
    cleared = decoder.decode(bytes.fromhex("011c00" + "076f7264657273" + "00"))
    assert cleared == records.ClearElrRecord(topic_id=TopicId("hgVbxQCe_Os7VnlrJKiLLQ"))
    assert decoder.decode(bytes.fromhex("011c000100")) == records.ClearElrRecord(topic_id=None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("020c00", "frame version 2"),
        ("016300", "unknown kind 99"),
        (_REGISTRATION[:60], "bytes expected"),
        ("011c00076f726465727300", "no topic"),
    ],
)
def test_what_is_no_record_is_refused(text: str, problem: str) -> None:
    with pytest.raises(FieldError, match=problem):
        _decode(text)

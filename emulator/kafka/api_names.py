"""Kafka's API keys, and what plans call messages of an API."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.rpc.interception import STREAM_API

FETCH: Final = "Fetch"
"""The API name of a fetch of records; from the controller, it is of metadata."""

API_KEYS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "Produce": 0,
        FETCH: 1,
        "ListOffsets": 2,
        "Metadata": 3,
        "OffsetCommit": 8,
        "OffsetFetch": 9,
        "JoinGroup": 11,
        "Heartbeat": 12,
        "LeaveGroup": 13,
        "SyncGroup": 14,
        "InitProducerId": 22,
        "OffsetForLeaderEpoch": 23,
        "AddPartitionsToTxn": 24,
        "EndTxn": 26,
        "WriteTxnMarkers": 27,
        "AlterPartition": 56,
        "BrokerRegistration": 62,
        "BrokerHeartbeat": 63,
        "AllocateProducerIds": 67,
        "DescribeTopicPartitions": 75,
    }
)
"""The APIs that nodes and clients call on each other, by name."""

QUORUM_API_KEYS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "FetchMetadata": API_KEYS[FETCH],
        "Vote": 52,
        "BeginQuorumEpoch": 53,
        "EndQuorumEpoch": 54,
        "FetchSnapshot": 59,
    }
)
"""The APIs that controllers call on each other, by name."""

_NAMES: Final = {key: name for name, key in API_KEYS.items()}
_QUORUM_NAMES: Final = {key: name for name, key in QUORUM_API_KEYS.items()}


def message_name(api_key: int, *, is_to_controller: bool, is_from_controller: bool = False) -> str:
    """Returns the name of an API's messages in plans; for an API that plans do not name, its number.

    A broker follows the metadata log by fetching from a controller, which here is the metadata stream.
    """
    if is_from_controller:
        return _QUORUM_NAMES.get(api_key, str(api_key))
    if is_to_controller and api_key == API_KEYS[FETCH]:
        return STREAM_API
    return _NAMES.get(api_key, str(api_key))

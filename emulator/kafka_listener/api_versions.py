"""ApiVersions: which APIs, versions and features a client may use (KIP-35, KIP-584).

The advertised versions are the contract: clients refuse to work without an API that they need, and send no others.
"""

import re
from collections.abc import Collection
from typing import Final

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.messages import FeatureRange
from laststand.emulator.core.metadata_version import BROKER_FEATURES
from laststand.emulator.kafka_listener.messages import Message, VersionRange, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Served

API_VERSIONS: Final = api_named("ApiVersions").key
_PRODUCE: Final = api_named("Produce").key
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_SOFTWARE_VERSION: Final = 3
_ALL_FEATURES_VERSION: Final = 4
"""From here on features whose lowest level is 0 are reported, too (KIP-1022)."""

_TRANSACTION_VERSIONS: Final = FeatureRange(
    name="transaction.version", min_supported_version=0, max_supported_version=2
)
"""Clients of this feature's level 2 have an epoch for each transaction (KIP-890). The era decides the level; it is no
record of the metadata log, as it is in Kafka."""


def unsupported_version(served: Served) -> Message:
    """Returns the answer to a version that is too new; it is encoded as version 0."""
    versions = served.versions[API_VERSIONS]
    key = {"apiKey": API_VERSIONS, "minVersion": versions.first, "maxVersion": versions.last}
    return {"errorCode": ErrorCode.UNSUPPORTED_VERSION, "apiKeys": [key]}


def api_versions(served: Served, request: ClientRequest, served_keys: Collection[int]) -> Message:
    """Answers a request.

    Args:
        served: the broker.
        request: of a client.
        served_keys: keys of the advertised APIs besides this one.
    """
    if request.version >= _SOFTWARE_VERSION:
        name, version = request.body["clientSoftwareName"], request.body["clientSoftwareVersion"]
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
            return {"errorCode": ErrorCode.INVALID_REQUEST}
        request.connection.software = f"{name} {version}"
    keys = sorted({API_VERSIONS, *served_keys} & served.versions.keys())
    image = served.broker.image
    features = {**image.features, _TRANSACTION_VERSIONS.name: served.transaction_version}
    lowest_shown = 0 if request.version >= _ALL_FEATURES_VERSION else 1
    return {
        "errorCode": ErrorCode.NONE,
        "apiKeys": [_advertised(key, served.versions[key]) for key in keys],
        "supportedFeatures": [
            {
                "name": feature.name,
                "minVersion": feature.min_supported_version,
                "maxVersion": feature.max_supported_version,
            }
            for feature in (*BROKER_FEATURES, _TRANSACTION_VERSIONS)
            if feature.min_supported_version >= lowest_shown
        ],
        "finalizedFeaturesEpoch": image.next_offset - 1,
        "finalizedFeatures": [
            {"name": name, "minVersionLevel": level, "maxVersionLevel": level}
            for name, level in sorted(features.items())
            if level > 0
        ],
    }


def _advertised(key: int, versions: VersionRange) -> Message:
    # Kafka 4.2 advertises the oldest versions of Produce, which it refuses: without them librdkafka does not compress.
    return {"apiKey": key, "minVersion": 0 if key == _PRODUCE else versions.first, "maxVersion": versions.last}

"""An era offers clients the APIs and versions that its release had, and refuses others."""

import pytest

from laststand.emulator.core.eras import ALL_ERAS, era_rules
from laststand.emulator.kafka_listener.messages import api_named
from laststand.emulator.kafka_listener.releases import release_of, served_versions

RELEASES = {
    "kafka-0.10": "2.1",
    "kafka-0.11": "2.1",
    "kafka-3.9": "3.9",
    "kafka-4.2": "4.2",
    "kip-966-text": "4.2",
    "kip-966": "4.2",
    "kafka-2.5-zk": "2.5",
    "kafka-2.6-zk": "2.6",
    "kafka-3.1-zk": "3.1",
    "kafka-3.2-zk": "3.2",
    "kafka-3.9-zk": "3.9-zk",
    "kip-550-zk": "3.9-zk",
}


def newest(era: str, api: str) -> int | None:
    versions = served_versions(era_rules(era)).get(api_named(api).key)
    return None if versions is None else versions.last


def test_each_era_has_its_release() -> None:
    assert {era: release_of(era_rules(era)) for era in ALL_ERAS} == RELEASES


@pytest.mark.parametrize(
    ("api", "versions"),
    [
        # Topic ids in Fetch since 3.1 (KIP-516), in Produce since 4.1; leaders' addresses since 3.7 (KIP-951).
        ("Fetch", {"kafka-2.5-zk": 11, "kafka-3.1-zk": 13, "kafka-3.9": 17, "kip-966": 18}),
        ("Produce", {"kafka-2.6-zk": 8, "kafka-3.2-zk": 9, "kafka-3.9": 11, "kafka-4.2": 13}),
        ("Metadata", {"kafka-0.11": 7, "kafka-2.5-zk": 9, "kafka-3.9": 12, "kip-966": 13}),
        ("ElectLeaders", {"kafka-0.11": None, "kafka-2.5-zk": 2, "kip-966": 2}),
        ("DescribeTopicPartitions", {"kafka-2.5-zk": None, "kafka-3.9-zk": None, "kip-966": 0}),
        ("DescribeQuorum", {"kafka-3.9-zk": None, "kafka-3.9": 2}),
        ("CreateTopics", {"kafka-2.5-zk": 5, "kafka-0.11": 3, "kip-966": 7}),
        ("InitProducerId", {"kip-966": 5}),
        ("ApiVersions", {"kafka-2.5-zk": 3, "kip-966": 4}),
    ],
)
def test_versions_by_era(api: str, versions: dict[str, int | None]) -> None:
    assert {era: newest(era, api) for era in versions} == versions


@pytest.mark.parametrize("era", ALL_ERAS)
def test_todays_clients_find_what_they_need(era: str) -> None:
    # KIP-896: clients of Kafka 4 need these versions of a broker.
    needed = {"Produce": 3, "Fetch": 4, "ListOffsets": 1, "Metadata": 0, "OffsetCommit": 2, "JoinGroup": 2}
    for api, version in needed.items():
        found = newest(era, api)
        assert found is not None
        assert found >= version, api

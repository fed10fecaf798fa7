"""The compose file: what is published is what the command prints, and every pair of nodes has its proxy."""

import json
from pathlib import Path

import yaml

from emulator.cluster.containers.compose import render

_PUBLISHED = Path(__file__).parents[3] / "docker/compose.yaml"


def test_the_published_file_is_what_the_command_prints() -> None:
    assert _PUBLISHED.read_text(encoding="utf-8") == render(brokers=3, racks=0, era="kip-966")


def test_every_node_reaches_every_other_through_a_proxy_of_its_own() -> None:
    document = yaml.safe_load(render(brokers=5, racks=3, era="kafka-3.9"))
    proxies = {each["name"]: each for each in json.loads(document["configs"]["proxies"]["content"])}
    assert len(proxies) == 6 * 6  # from five brokers, the controller and the clients; nobody dials itself
    assert len({each["listen"] for each in proxies.values()}) == len(proxies)
    assert proxies["0->3"]["upstream"] == "broker-3:9092"
    brokers = [document["services"][f"broker-{number}"] for number in range(5)]
    for number, broker in enumerate(brokers):
        port = proxies[f"{number}->100"]["listen"].rpartition(":")[2]
        assert f"100=toxiproxy:{port}" in broker["environment"]["LASTSTAND_ADDRESSES"]
        assert broker["ports"] == [f"127.0.0.1:{19092 + number}:9092"]
    assert [each["environment"]["LASTSTAND_BROKER_RACK"] for each in brokers] == ["a", "b", "c", "a", "b"]

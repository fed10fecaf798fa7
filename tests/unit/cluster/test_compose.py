"""The compose file: what is published is what the command prints, and every pair of nodes has its proxy."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from laststand.emulator.cluster.containers.compose import render
from laststand.emulator.cluster.containers.labels import NODE, RUN
from laststand.emulator.cluster.containers.monitoring import PANELS, dashboard
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.node.environment import PREFIX, kafka_listeners

_PUBLISHED = Path(__file__).parents[3] / "docker/compose.yaml"


def test_the_published_file_is_what_the_command_prints() -> None:
    assert _PUBLISHED.read_text(encoding="utf-8") == render(brokers=3, racks=0, era="kip-966")


def test_images_of_this_project_are_built_and_never_pulled() -> None:
    document = yaml.safe_load(_PUBLISHED.read_text(encoding="utf-8"))
    assert document["name"] == "laststand"
    stages = set(re.findall(r"^FROM .* AS ([a-z-]+)$", (_PUBLISHED.parent / "Dockerfile").read_text(), re.MULTILINE))
    pulled = {name for name, service in document["services"].items() if service["pull_policy"] != "never"}
    assert pulled == {"grafana"}
    assert document["services"]["grafana"]["profiles"] == ["grafana"], "pulled by who asks for it by name"
    for name in document["services"].keys() - pulled:
        build = document["services"][name]["build"]
        assert build["context"] == "${LASTSTAND_CHECKOUT:-..}"
        assert build["dockerfile"] == "docker/Dockerfile"
        assert build["target"] in stages, name


def test_every_image_is_made_by_the_target_of_make() -> None:
    makefile = (_PUBLISHED.parents[1] / "Makefile").read_text(encoding="utf-8")
    assert "\n\tdocker/build.sh --all\n" in makefile


def proxies_in(document: dict[str, Any]) -> dict[str, dict[str, str]]:
    told = document["services"]["toxiproxy"]["environment"]
    lists = [json.loads(text) for name, text in told.items() if name.startswith("LASTSTAND_PROXIES_")]
    return {each["name"]: each for links in lists for each in links}


def test_every_node_reaches_every_other_through_a_proxy_of_its_own() -> None:
    document = yaml.safe_load(render(brokers=5, racks=3, era="kafka-3.9"))
    proxies = proxies_in(document)
    of_nodes = [name for name in proxies if not name.startswith(("1001->", "1002->"))]
    assert len(of_nodes) == 6 * 6  # from five brokers, the controller and the clients; nobody dials itself
    assert proxies["0->3"]["upstream"] == "broker-3:9092"
    brokers = [document["services"][f"broker-{number}"] for number in range(5)]
    for number, broker in enumerate(brokers):
        port = proxies[f"{number}->100"]["listen"].rpartition(":")[2]
        assert f"100=toxiproxy:{port}" in broker["environment"]["LASTSTAND_ADDRESSES"]
        assert broker["environment"]["LASTSTAND_CONTROLLER_ADDRESS"] == "controller:9092"
        assert broker["ports"] == [f"127.0.0.1:{19092 + number}:9092"]
    assert [each["environment"]["LASTSTAND_BROKER_RACK"] for each in brokers] == ["a", "b", "c", "a", "b"]


@pytest.mark.parametrize("brokers", [1, 90])
def test_clients_of_kafka_reach_brokers_through_proxies_of_their_own(brokers: int) -> None:
    services = yaml.safe_load(render(brokers=brokers, racks=0, era="kip-966"))["services"]
    proxies = proxies_in({"services": services})
    listening = {name: each["listen"].rpartition(":")[2] for name, each in proxies.items()}
    assert len(set(listening.values())) == len(proxies)
    published = dict(port.removeprefix("127.0.0.1:").split(":") for port in services["toxiproxy"]["ports"])
    for number in range(brokers):
        environment = services[f"broker-{number}"]["environment"]
        listeners = kafka_listeners({key.removeprefix(PREFIX): text for key, text in environment.items()})
        for name, client_id in (("network", 1001), ("host", 1002)):
            listener = listeners[name]
            proxy = f"{client_id}->{number}"
            assert listener.client_id == client_id
            assert proxies[proxy]["upstream"] == f"broker-{number}:{listener.port}"
            host, _, port = listener.advertised[BrokerId(NodeId(number))].partition(":")
            assert listening[proxy] == (port if name == "network" else published[port])
            assert host == ("toxiproxy" if name == "network" else "127.0.0.1")
    assert "history:/var/lib/laststand/run/history" in services["broker-0"]["volumes"]
    assert "LASTSTAND_KAFKA_CLIENTS" not in services["controller"]["environment"]


def test_prometheus_scrapes_every_node_and_grafana_shows_what_it_scrapes() -> None:
    document = yaml.safe_load(render(brokers=2, racks=0, era="kip-966"))
    contents = {name: each["content"] for name, each in document["configs"].items() if "content" in each}
    [job] = yaml.safe_load(contents["prometheus"])["scrape_configs"]
    targets = [target for each in job["static_configs"] for target in each["targets"]]
    assert targets == ["controller:9464", "broker-0:9464", "broker-1:9464"]
    assert document["services"]["broker-0"]["environment"]["LASTSTAND_METRICS_PORT"] == "9464"
    [source] = yaml.safe_load(contents["grafana-source"])["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [provider] = yaml.safe_load(contents["grafana-dashboards"])["providers"]
    mounted = {each["source"]: each["target"] for each in document["services"]["grafana"]["configs"]}
    assert Path(mounted["dashboard"]).parent == Path(provider["options"]["path"])
    assert not re.search(r"(?<!\$)\$(?!\$)", contents["dashboard"]), "compose would look for a variable"
    assert json.loads(contents["dashboard"].replace("$$", "$")) == json.loads(dashboard())
    assert [each["title"] for each in json.loads(dashboard())["panels"]] == [each.title for each in PANELS]


def test_spark_reads_every_volume_and_writes_none() -> None:
    services = yaml.safe_load(render(brokers=3, racks=0, era="kip-966"))["services"]
    of_harness = services["chaos"]["volumes"][1:]  # the first is the engine's socket
    assert services["spark-worker"]["volumes"] == [f"{each}:ro" for each in of_harness]
    assert all(services[name]["profiles"] == ["spark"] for name in ("spark-master", "spark-worker"))


def test_everything_carries_the_label_of_the_project() -> None:
    document = yaml.safe_load(render(brokers=2, racks=0, era="kip-966"))
    for kind in ("services", "networks", "volumes"):
        for name, each in document[kind].items():
            assert RUN in each["labels"], name


def test_a_harness_in_the_project_starts_nodes_of_the_images_that_were_chosen() -> None:
    services = yaml.safe_load(render(brokers=1, racks=0, era="kip-966"))["services"]
    assert services["chaos"]["environment"]["LASTSTAND_IMAGE"] == services["broker-0"]["image"]
    assert services["chaos"]["environment"]["TOXIPROXY_IMAGE"] == services["toxiproxy"]["image"]


def test_settings_are_defaults_that_the_environment_can_replace() -> None:
    text = render(brokers=1, racks=0, era="kip-966", switches={"elr": "off"}, properties={"num.partitions": "3"})
    assert text.splitlines()[0].endswith(
        "Made by: laststand compose --brokers 1 --era kip-966 --set elr=off --set num.partitions=3"
    )
    environment = yaml.safe_load(text)["services"]["broker-0"]["environment"]
    assert environment["LASTSTAND_SET"] == "${LASTSTAND_SET:-elr=off}"
    assert environment["LASTSTAND_NUM_PARTITIONS"] == "${LASTSTAND_NUM_PARTITIONS:-3}"
    assert environment["LASTSTAND_MIN_INSYNC_REPLICAS"] == "${LASTSTAND_MIN_INSYNC_REPLICAS:-2}"


def test_with_the_profile_a_zookeeper_server_takes_the_controllers_place() -> None:
    document = yaml.safe_load(render(brokers=2, racks=0, era="kip-966"))
    server, harness = document["services"]["zookeeper"], document["services"]["harness"]
    assert server["profiles"] == ["zookeeper"]
    assert server["networks"] == {"cluster": {"aliases": ["controller"]}}
    assert server["labels"][NODE] == document["services"]["controller"]["labels"][NODE]
    assert server["volumes"][0] in document["services"]["controller"]["volumes"]
    assert server["ports"] != document["services"]["controller"]["ports"]
    assert server["environment"]["LASTSTAND_ERA"] == "${LASTSTAND_ERA:-kip-966}"
    assert harness["depends_on"]["zookeeper"] == {"condition": "service_healthy", "required": False}
    assert harness["depends_on"]["controller"] == {"condition": "service_healthy"}


def test_a_file_for_an_era_with_zookeeper_has_the_server_and_no_controller() -> None:
    document = yaml.safe_load(render(brokers=2, racks=0, era="kafka-3.9-zk"))
    services = document["services"]
    assert "controller" not in services
    assert "profiles" not in services["zookeeper"]
    healthy = {"condition": "service_healthy"}
    assert services["harness"]["depends_on"] == {"broker-0": healthy, "broker-1": healthy, "zookeeper": healthy}
    assert services["broker-0"]["environment"]["LASTSTAND_ERA"] == "${LASTSTAND_ERA:-kafka-3.9-zk}"
    proxies = proxies_in(document)
    assert proxies["1->100"]["upstream"] == "controller:9092", "the alias of the server"
    [job] = yaml.safe_load(document["configs"]["prometheus"]["content"])["scrape_configs"]
    assert [each["targets"] for each in job["static_configs"]] == [["broker-0:9464"], ["broker-1:9464"]]


def test_only_harnesses_have_the_engines_socket_and_no_service_stays_root() -> None:
    services = yaml.safe_load(render(brokers=3, racks=0, era="kip-966"))["services"]
    assert {name for name, each in services.items() if "docker.sock" in str(each)} == {"harness", "chaos"}
    for name in ("harness", "chaos"):
        assert "setpriv --reuid 10001 --regid 10001" in services[name]["entrypoint"][2]
        assert (services[name]["cap_drop"], services[name]["cap_add"]) == (["ALL"], ["SETUID", "SETGID"])
    assert {name for name, each in services.items() if str(each.get("user", "10001")).startswith("0")} == {
        "harness",
        "chaos",
    }


def test_nodes_proxies_and_the_client_are_confined_and_everything_is_limited() -> None:
    services = yaml.safe_load(render(brokers=2, racks=0, era="kip-966"))["services"]
    for name in ("toxiproxy", "controller", "broker-0", "broker-1", "zookeeper", "client"):
        assert services[name]["read_only"], name
        assert services[name]["cap_drop"] == ["ALL"], name
        assert services[name]["security_opt"] == ["no-new-privileges:true"], name
    for name, service in services.items():
        assert service["pids_limit"], name
        assert service["mem_limit"], name


def test_the_token_is_in_a_volume_that_nodes_write_and_toxiproxy_reads() -> None:
    services = yaml.safe_load(render(brokers=2, racks=0, era="kip-966"))["services"]
    mounted = {
        name: volume
        for name, service in services.items()
        for volume in service.get("volumes", ())
        if volume.startswith("token:")
    }
    path = "token:/var/lib/laststand/token"
    assert mounted == {"toxiproxy": f"{path}:ro", "controller": path, "broker-0": path, "broker-1": path}
    told = {services[name]["environment"]["LASTSTAND_TOKEN_FILE"] for name in mounted}
    assert told == {"/var/lib/laststand/token/token"}


def test_several_controllers_reach_each_other_and_have_no_server_in_their_place() -> None:
    document = yaml.safe_load(render(brokers=90, racks=0, era="kip-966", controllers=5))
    services, proxies = document["services"], proxies_in(document)
    names = ("controller", "controller-101", "controller-102", "controller-103", "controller-104")
    assert "zookeeper" not in services
    ports = [each["listen"].rpartition(":")[2] for each in proxies.values()]
    assert len(set(ports)) == len(ports)
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert len({port.split(":")[1] for port in published}) == len(published)
    for node_id, name in enumerate(names, start=100):
        environment = services[name]["environment"]
        assert environment["LASTSTAND_CONTROLLER_IDS"] == "100,101,102,103,104"
        assert environment["LASTSTAND_NODE_ID"] == str(node_id)
        assert proxies[f"0->{node_id}"]["upstream"] == f"{name}:9092"
        others = {str(each) for each in range(100, 105)} - {str(node_id)}
        assert others < {each.partition("=")[0] for each in environment["LASTSTAND_ADDRESSES"].split(",")}
        assert services["harness"]["depends_on"][name] == {"condition": "service_healthy"}


def test_a_compose_file_is_written_without_the_sdk_of_docker() -> None:
    program = (
        "import sys; sys.modules['docker'] = None; from laststand.cli.main import cli; "
        "cli(['compose'], standalone_mode=False)"
    )
    written = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert written.returncode == 0, written.stderr
    assert "services:" in written.stdout

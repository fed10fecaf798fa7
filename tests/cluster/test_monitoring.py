"""The dashboard beside a Prometheus: every query of it has an answer on a cluster that works and is broken."""

import json
import math
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from laststand.emulator.cluster.containers.monitoring import PANELS, RATE_INTERVAL, prometheus_config
from tests.cluster.survivors import MARK
from tests.cluster.test_standing import FAST, ROOT, Terminal, lines, open_terminal
from tests.fake_grafana import FakeGrafana

pytestmark = pytest.mark.cluster

DEADLINE_S = 60.0
PRODUCE = 50


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with open_terminal(tmp_path) as terminal:
        yield terminal


class Prometheus:
    """One that listens on loopback."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def values(self, query: str) -> list[float]:
        """Returns what an instant query finds; nothing while nobody answers."""
        asked = urllib.parse.urlencode({"query": query.replace(RATE_INTERVAL, "15s")})
        try:
            with self._opener.open(f"{self._url}/api/v1/query?{asked}", timeout=5) as response:
                found = json.load(response)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query}: {error.read().decode()}") from None
        except OSError:
            return []
        return [float(each["value"][1]) for each in found]


@contextmanager
def prometheus(config: Path, *, mark: str) -> Iterator[Prometheus]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={config.parent / 'prometheus'}",
        f"--web.listen-address={address}",
    ]
    with (config.parent / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, MARK: mark})
        try:
            yield Prometheus(f"http://{address}")
        finally:
            process.kill()
            process.wait()


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="no prometheus: apt-get install prometheus")
@pytest.mark.timeout(300)
def test_every_query_has_an_answer(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeGrafana() as grafana:
        monkeypatch.setenv("LASTSTAND_GRAFANA", grafana.url)
        terminal.type("up", *FAST)
        terminal.type("topics", "create", "orders", "--replica-assignment", "0:1:2")
        config = terminal.directory / "prometheus.yml"
        described = yaml.safe_load((terminal.latest / "cluster.yaml").read_text(encoding="utf-8"))
        nodes = {str(node): urllib.parse.urlsplit(url).netloc for node, url in described["metrics"].items()}
        config.write_text(prometheus_config(nodes), encoding="utf-8")
        checked = subprocess.run(["promtool", "check", "config", config], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        with prometheus(config, mark=terminal.mark) as server:
            deadline = time.monotonic() + DEADLINE_S
            queries = {query for panel in PANELS for query, _ in panel.queries}
            while queries := {query for query in queries if not any(map(math.isfinite, server.values(query)))}:
                assert time.monotonic() < deadline, f"no answer to {queries}"
                terminal.type("produce", "orders", stdin=lines(1, PRODUCE))
            terminal.type("chaos", "kill", "0")
            terminal.type("chaos", "step", "until: {partition: orders-0, leader: 1, isr: [1, 2]}")
            while server.values("kafka_topic_partition_in_sync_replica") != [2.0]:
                assert time.monotonic() < deadline
            assert max(server.values("increase(laststand_leader_changes_total[15s])")) > 0
            assert server.values("kafka_brokers") == [2.0]
        terminal.type("down")
        [killed] = [body for _, _, body in grafana.got if "kill" in str(body["text"])]
        assert killed["tags"] == ["laststand", "kill", f"run:{terminal.latest.name}"]
        assert "was killed" in str(killed["text"])


def test_the_published_compose_file_holds_a_config_that_promtool_accepts(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("no promtool: apt-get install prometheus")
    document = yaml.safe_load((ROOT / "docker/compose.yaml").read_text(encoding="utf-8"))
    config = tmp_path / "prometheus.yml"
    config.write_text(document["configs"]["prometheus"]["content"], encoding="utf-8")
    subprocess.run(["promtool", "check", "config", config], check=True, capture_output=True)

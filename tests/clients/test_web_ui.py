"""A web UI for Kafka in a browser: kafka-viewer, in an environment of its own, shows a topic and its records."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from docs.screenshots import browser_program
from laststand.emulator.cluster.ports import LOOPBACK, ReservedPort
from laststand.standing_cluster import StandingCluster
from tests.clients.clients import PATIENCE_S
from tests.clients.programs import WEB_UI, python_environment

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(900)]


@pytest.fixture
def address(cluster: StandingCluster, tmp_path: Path) -> Iterator[str]:
    """The address of the UI's page."""
    viewer = python_environment(WEB_UI) / "bin" / "kafka-viewer"
    properties = tmp_path / "viewer.properties"
    properties.write_text(f"kafka.bootstrap.servers={cluster.bootstrap_servers}\n", encoding="utf-8")
    port = ReservedPort()
    port.lend()
    settings = {"PORT": str(port.number), "HEADLESS": "true", "ADDRESS": LOOPBACK}
    environment = {f"STREAMLIT_SERVER_{name}": value for name, value in settings.items()}
    with (tmp_path / "viewer.log").open("wb") as log:
        running = subprocess.Popen(
            (viewer, "--config", properties),
            env={**os.environ, "HOME": str(tmp_path), **environment},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError), socket.create_connection((LOOPBACK, port.number), timeout=1):
                break
            assert time.monotonic() < deadline, (tmp_path / "viewer.log").read_text()
            time.sleep(0.2)  # between two looks at the port
        yield f"http://{port.address}"
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        port.close()


def test_a_page_shows_topics_and_records(cluster: StandingCluster, address: str) -> None:
    browser = browser_program()
    if browser is None:
        pytest.skip("no Chromium")
    cluster.create_topic("orders", partitions=2, replication_factor=3)
    assert cluster.produce("orders", [b"order %d" % number for number in range(20)]).acked == 20
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        page.goto(address)
        page.get_by_text("Status: Connected").wait_for()
        page.get_by_role("button", name="Load Messages", exact=True).click()
        page.get_by_text("#20 partition=").click()
        page.get_by_text("order ").last.wait_for()
        chromium.close()

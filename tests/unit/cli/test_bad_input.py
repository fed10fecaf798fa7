"""Mistakes in scenarios and in requests for them: one line that says where, 254, and nothing has started.

All run in one process, and one also in a process of its own, as a user has it.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.unit.cli.one_process import Laststand, Result, one_process

SCENARIO: Final = """\
name: mine
cluster: {brokers: 2}
topics: [{name: orders, replicas: [[0, 1]]}]
workload: {producers: [{acks: all, rate: 10}]}
steps:
  - until: {acked: 1}
"""

FILES: Final = {
    "good.yaml": SCENARIO,
    "key.yaml": SCENARIO.replace("brokers: 2", "brokers: 2, broker: 2"),
    "link.yaml": SCENARIO + "  - cut: {from: 1, to: 1}\n",
    "time.yaml": SCENARIO + "  - clock_jump: {node: 1, by: -3 s}\n",
    "names.yaml": SCENARIO.replace("]]}]", "]]}, {name: orders, replicas: [[0]]}]"),
    "cycle.yaml": "suite: own\nscenarios: [inner.yaml]\n",
    "inner.yaml": "suite: inner\nscenarios:\n  - cycle.yaml\n",
    "expects.yaml": SCENARIO + "  - kill: {node: zookeeper}\nexpect:\n  kip-966: {verdict: valid}\n",
    "expires.yaml": SCENARIO + "  - expire_session: {node: 1}\nexpect:\n  kip-966: {verdict: valid}\n",
    "server.yaml": SCENARIO + "  - cut: {from: 1, to: zookeeper}\n",
    "clock.yaml": SCENARIO + "  - clock: {node: zookeeper, rate: 2000000}\n",
    "needs.yaml": SCENARIO + "requires: {elr: on}\n",
    "needless.yaml": SCENARIO + "requires: {elr: on}\nexpect:\n  kafka-3.9: {verdict: valid}\n",
    "hooks.yaml": "nodes: {0: '0', 1: '1'}\nhooks: {kill: {command: 'true'}}\n",
    "suite.yaml": "suite: own\nscenarios:\n  - empty\n",
    "twice/a.yaml": SCENARIO,
    "outside.yaml": SCENARIO.replace("name: mine", "# up and away\nname: ../../mine"),
    "absolute.yaml": SCENARIO.replace("name: mine", f"name: {tempfile.gettempdir()}/mine"),
    "twice/b.yaml": SCENARIO,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("input")
    for name, text in FILES.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    (place / "empty").mkdir()
    (place / "bytes.yaml").write_bytes(b"\xff\xfe")
    (place / "dangling.yaml").symlink_to("nowhere.yaml")
    return place


@pytest.fixture(scope="module")
def laststand(folder: Path) -> Iterator[Laststand]:
    with one_process(folder) as run:
        yield run


def check_told(result: Result, said: str) -> None:
    assert (result.returncode, result.stdout) == (254, "")
    (line,) = result.stderr.splitlines()
    assert said in line
    assert len(line) < 400


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param("run key.yaml", "key.yaml:2: broker: unknown key, allowed: brokers", id="unknown key"),
        pytest.param(
            "run good.yaml --era kafka-1.0", "era=kafka-1.0 is not allowed; expected one of", id="unknown era"
        ),
        pytest.param("run good.yaml --driver java", "'--driver': 'java' is not one of", id="unknown driver"),
        pytest.param("run link.yaml", "link.yaml:7: to: a link from 1 to itself", id="impossible link"),
        pytest.param("run time.yaml", "time.yaml:7: by: '-3 s' is no duration", id="negative time"),
        pytest.param("run names.yaml", "names.yaml:3: topics: topic 'orders' is there twice", id="duplicate names"),
        pytest.param("run cycle.yaml", "inner.yaml:3: scenarios: cycle.yaml leads back", id="cyclic includes"),
        pytest.param("run expects.yaml", "expects.yaml:9: kip-966: nothing can play this era", id="expected era"),
        pytest.param("scenarios check expires.yaml", "expires.yaml:9: kip-966: nothing can play", id="checked era"),
        pytest.param("run expects.yaml --repeat 2", "expects.yaml:9: kip-966: nothing can play", id="era of a suite"),
        pytest.param("run server.yaml", "zookeeper (line 7): there is no ZooKeeper in this era", id="no ZooKeeper"),
        pytest.param(
            "run server.yaml --driver simulator", "zookeeper (line 7): there is no ZooKeeper", id="none in virtual time"
        ),
        pytest.param("run clock.yaml --era kafka-3.9-zk", "(line 7): a real ZooKeeper server uses", id="its clock"),
        pytest.param("run empty", "scenario=empty is not allowed; expected a folder with scenarios", id="empty folder"),
        pytest.param("run needs.yaml --era kafka-3.9", "elr (line 7) requires elr=on, and kafka-3.9", id="a rule"),
        pytest.param("run needless.yaml", "needless.yaml:9: kafka-3.9: nothing can play this era", id="rule of an era"),
        pytest.param("run suite.yaml", "suite.yaml:3: scenarios: 'empty' is nothing to play", id="empty in a suite"),
        pytest.param("run twice", "b.yaml:1: name: 'mine' is the name of twice/a.yaml, too", id="two cells of a name"),
        pytest.param("run bytes.yaml", "bytes.yaml:1: cannot be read", id="no text"),
        pytest.param("run dangling.yaml", "dangling.yaml:1: cannot be read", id="a link that leads nowhere"),
        pytest.param(
            "scenarios check outside.yaml", "outside.yaml:2: name: '../../mine' is no name", id="checked name"
        ),
        pytest.param(
            "run outside.yaml --driver simulator", "outside.yaml:2: name: '../../mine' is no", id="name above"
        ),
        pytest.param("run absolute.yaml --no-verify", "absolute.yaml:1: name: '/", id="name from the root"),
        pytest.param("up --name ../mine", "--name ../mine: expected letters", id="cluster above"),
        *[
            pytest.param(
                f"tap --upstream kafka:9092 --out tap --listen {place}",
                f"--listen {place}: expected",
                id=f"tap {place}",
            )
            for place in ("9092", ":9092", "127.0.0.1:65536", "127.0.0.1:-1")
        ],
        *[
            pytest.param(
                f"{command} {place}",
                f"{command.split()[-1]}={place} is not allowed; expected host:port, with a port from 1 to 65535",
                id=f"{command.split()[-1]} {place}",
            )
            for command in (
                "tap --out tap --upstream",
                "run good.yaml --driver external --hooks hooks.yaml --bootstrap",
            )
            for place in ("127.0.0.1:65536", "127.0.0.1:0", ":9092", "127.0.0.1:kafka")
        ],
        pytest.param("run nothing-like-it", "a name that laststand scenarios lists", id="unknown name"),
    ],
)
def test_one_line_says_where(arguments: str, said: str, folder: Path, laststand: Laststand) -> None:
    before = sorted(folder.rglob("*"))
    check_told(laststand(*arguments.split()), said)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("run key.yaml", "key.yaml:2: broker: unknown key, allowed: brokers"),
        ("tap --out tap --upstream 127.0.0.1:0", "--upstream=127.0.0.1:0 is not allowed"),
    ],
)
def test_the_end_of_the_process_adds_nothing(arguments: str, said: str, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    command = [sys.executable, "-m", "laststand.cli", *arguments.split()]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    check_told(result, said)
    assert sorted(folder.rglob("*")) == before

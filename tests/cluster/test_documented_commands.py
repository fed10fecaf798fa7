"""Every command that README and docs show does what it says when it is pasted into a shell.

A reader's directory has the checkout's ``.venv`` and ``tests``, and the files that the text around a command shows.
A line that is one command and needs nothing of a shell has no process of its own: to start Python takes longer than
most of them, and a Spark session far longer. What plays, judges or queries is carried out in this process: with Spark
in the session of the tests, which judges a reader's first run, and ``tests/packaging`` has a command with a session of
its own. What else is played is judged in this process, as ``--judge here`` does, with the same verdicts. What starts
standing clusters has a shell, in which ``laststand`` is forked; all else is in one process.
"""

import contextlib
import glob
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import pytest
from click.testing import CliRunner

from laststand.chaos.scenario.scenario_file import scenario_names
from laststand.cli.main import cli, explain
from laststand.emulator.analysis import catalogue
from tests.cluster import test_story
from tests.cluster.forked_laststand import laststand_program
from tests.cluster.settings import patient_copy
from tests.cluster.signals import default_signals
from tests.cluster.survivors import DEADLINE_S, MARK, leave_nothing
from tests.cluster.test_standing import QUESTIONS
from tests.documented_scenarios import ROOT, documented_blocks, documented_commands_beside_kafkas
from tests.kafka_logs.archives import unpack
from tests.library import eras_of
from tests.unit.cli.one_process import Laststand, Result, one_process
from tests.unit.docs.test_commands import SHOWN
from tests.unit.docs.test_commands import commands as shown_commands

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

COMMAND_S: Final = 240.0

BLOCKS: Final = {
    "first scenario": ("README.md", ".venv/bin/laststand scenarios new"),
    "scenario": ("docs/first-scenario.md", ".venv/bin/laststand run paused-leader.yaml"),
    "one rule": ("docs/first-scenario.md", ".venv/bin/laststand run kip-497"),
    "by hand": ("docs/standing-cluster.md", "laststand up --brokers 3\n"),
    "transactions": ("docs/transactions.md", "laststand replay"),
    "suite": ("docs/suites.md", "$ laststand run kip-497 kip-841"),
    "suite again": ("docs/suites.md", "$ laststand run kip-497 --driver"),
    "fuzz": ("docs/suites.md", "$ laststand fuzz"),
    "tables": ("docs/analyses.md", "laststand sql"),
    "analysis": ("docs/analyses.md", "$ laststand analyze"),
    "query": ("docs/analyses.md", "$ laststand sql"),
    "switch": ("docs/first-scenario.md", ".venv/bin/laststand run kip-966/last-replica-standing --set"),
    "review": ("README.md", ".venv/bin/laststand run kip-966/last-replica-standing --driver simulator"),
    "explore": ("docs/plans.md", "laststand simulate --seeds 9..20 "),
    "plans": ("docs/plans.md", "laststand simulate --seeds 1..1000 "),
    "simulator": ("emulator/simulator/README.md", "laststand simulate"),
    "ZooKeeper": ("docs/eras-zookeeper.md", "laststand run zookeeper/leader-loses-zookeeper"),
    "real cluster": ("README.md", ".venv/bin/laststand autopsy"),
    "autopsy": ("docs/autopsy.md", "$ laststand autopsy"),
    "import": ("docs/autopsy.md", "$ laststand import"),
    "imported": ("docs/autopsy.md", "$ laststand sql imported"),
    "histories": ("docs/histories.md", "$ laststand import"),
    "power loss": ("docs/power-loss.md", "$ laststand power-loss"),
    "install": ("docs/install.md", "pip wheel"),
    "completion": ("docs/install.md", 'eval "$(laststand completion bash)"'),
    "walk: begin": ("docs/standing-cluster.md", "$ laststand up --set"),
    "walk: leader": ("docs/standing-cluster.md", "$ laststand chaos isolate 'leader"),
    "walk: power": ("docs/standing-cluster.md", "$ laststand chaos isolate 1"),
    "walk: heal": ("docs/standing-cluster.md", "$ laststand chaos heal"),
    "walk: end": ("docs/standing-cluster.md", "$ laststand down"),
    "ZooKeeper server": ("docs/standing-cluster.md", "$ laststand up --era kafka-3.9-zk"),
}
"""Places of the commands: the document, and how their block begins."""

PLAYED_ELSEWHERE: Final = frozenset(
    {
        ".venv/bin/laststand run kip-497/leader-cut-off",
        "laststand run zookeeper/leader-loses-zookeeper --era kafka-2.6-zk --era kafka-3.9-zk",
    }
)
"""Commands that play what their scenario expects. ``tests/simulation`` plays both in virtual time, as processes
``test_zookeeper_story`` plays the second, and the command beside the first plays that, without its rule."""

FROM_KAFKA: Final = "from-kafka.md"
ELSEWHERE: Final = frozenset(
    {FROM_KAFKA, "docker.md", "external.md", "tap.md", "kafka.md", "kafka-hazards.md", "differential.md"}
)
"""Documents whose commands are not pasted: one is played row by row, others need what not every machine has."""

FILES: Final = {
    "lines": "".join(f"key-{number}:value {number}\n" for number in range(200)),
    "partitions.json": '{"partitions": [{"topic": "orders", "partition": 0}]}',
    "offsets.json": '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 0}]}',
    "moves.json": '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 1, 0]}]}',
}
"""Files that a reader who comes from Kafka has."""

EXIT_CODES: Final = {
    "run kip-497/leader-cut-off --set maximal_isr=proposed": {1},
    "run kip-966/last-replica-standing --set unclean_detection=off --driver simulator": {1},
    "run kip-966/last-replica-standing --driver simulator --against --set elr=off": {1},
    "run kip-497 --driver simulator --era kip-966 --set maximal_isr=proposed --results results.json": {1},
    "run --rerun results.json": {1},
    "simulate --seeds 9..20 --set elr=off": {1},
    "simulate --era kafka-2.6-zk --seeds 1..5": {0, 1},
    "simulate --era kafka-2.6-zk --set stop_replica_epoch=off": {0, 1},
    "replay tests/simulation/regressions/s09-ap-partition-epoch-check-off.txt": {1},
    "replay tests/simulation/regressions/t07-coordinator-awaits-commit-off.txt": {1},
    "simulate --profile transactions --set epoch_per_transaction=off --seeds 14..20": {1},
    "simulate kip-966/last-replica-standing --era kafka-3.9": {0, 1},
    "metadata-quorum describe": {254},
    "metadata-quorum add 102": {254},
    "metadata-quorum remove 102": {254},
    "elect-leaders --election-type unclean --topic orders --partition 0": {0, 1},
    "reassign --reassignment-json-file moves.json --verify": {0, 2},
    "reassign --reassignment-json-file moves.json --cancel": {0, 1},
    "reassign --topic orders --partition 0 --replicas 2,1 --verify": {0, 2},
    "verify lossy --judge here": {1},
}
"""Exit codes of commands that may end with another than 0: they find something, or something was over before."""


PLAY_OR_JUDGE: Final = frozenset({"run", "fuzz", "verify", "replay"})
"""Verbs with ``--judge``."""

HERE: Final = {verb: {"judge": "here"} for verb in PLAY_OR_JUDGE}
"""Defaults of options, by verb."""

USE_SPARK: Final = frozenset({"sql", "analyze", "export"})
"""Other verbs."""

FIND_THE_SAME: Final = frozenset(
    {
        "laststand simulate --seeds 1..1000 --set elr=off",
        "laststand simulate --seeds 1..1000 --set elr=off --out runs/found",
        "laststand simulate --seeds 9..20",
        "laststand simulate --set elr=off",
        "laststand simulate kip-966/last-replica-standing --era kafka-3.9",
    }
)
"""Another command that is pasted explores the same schedules: seeds with ``--set elr=off``, or with ``--jobs 2``. The
run that a finding leaves is looked into in ``tests/unit/cli/test_simulate.py``; a seed of those on a scenario's cluster
is explored in ``tests/unit/cli/test_simulate_scenario.py``."""

IN_ONE_PROCESS: Final = QUESTIONS | {"autopsy", "import", "scenarios", "show", "simulate"}
"""Verbs that start no cluster and read no stdin."""


_Test = TypeVar("_Test", bound=Callable[..., None])


def in_one_session(test: _Test) -> _Test:
    """Has a test's reader use the session of the tests for whatever uses Spark."""
    for mark in (pytest.mark.spark, pytest.mark.usefixtures("one_session")):
        test = mark(test)
    return test


class Reader:
    """Somebody who pastes commands, one after the other.

    Args:
        directory: the current one.
        laststand: carries out ``IN_ONE_PROCESS``.
        has_session: whether commands find the session of the tests; without it they use no Spark.
    """

    def __init__(self, directory: Path, laststand: Laststand, *, has_session: bool) -> None:
        self.directory = directory
        self.laststand = laststand
        self.has_session = has_session
        self.mark = uuid.uuid4().hex
        (directory / ".venv").symlink_to(Path(sys.executable).parent.parent)
        for name in ("tests", "Makefile"):
            (directory / name).symlink_to(ROOT / name)
        for name, text in FILES.items():
            (directory / name).write_text(text)

    def start(self, command: str) -> "subprocess.Popen[str]":
        """Starts a command in a session of its own, as a job of a shell has its own group."""
        folders = (Path(laststand_program()).parent, self.directory / ".venv/bin", os.environ["PATH"])
        with default_signals():
            return subprocess.Popen(
                ["bash", "-o", "pipefail", "-c", command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=self.directory,
                env={**os.environ, "PATH": os.pathsep.join(map(str, folders)), MARK: self.mark},
                start_new_session=True,
            )

    def paste(self, command: str, stdin: str = "") -> str:
        """Returns what a command printed; it must end as documented."""
        words = self.words(command)
        if words and words[0] in PLAY_OR_JUDGE | USE_SPARK:
            done = self._carry_out(words)
        elif words and words[0] in IN_ONE_PROCESS:
            done = self.laststand(*words)
        else:
            done = self._paste_into_shell(command, stdin)
        assert done.returncode in EXIT_CODES.get(arguments(command), {0}), f"{command}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr, f"{command}\n{done.stderr}"
        return done.stdout + done.stderr

    def _paste_into_shell(self, command: str, stdin: str) -> Result:
        with self.start(command) as process:
            try:
                out, err = process.communicate(stdin, timeout=COMMAND_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return Result(command, process.returncode, out, err)

    def words(self, command: str) -> list[str] | None:
        """Returns what the shell would make of a command; ``None`` if it does more than to start laststand once."""
        if not re.fullmatch(r"(\.venv/bin/)?laststand [^|&;<>$`]*", command):
            return None
        named = shlex.split(command)[1:]
        return [each for word in named for each in self._found(word)]

    def _found(self, word: str) -> list[str]:
        is_pattern = "*" in word and " " not in word
        return sorted(glob.glob(word, root_dir=self.directory)) if is_pattern else [word]

    def _carry_out(self, words: list[str]) -> Result:
        assert self.has_session or words[0] not in USE_SPARK
        with contextlib.chdir(self.directory):
            defaults = {} if self.has_session else HERE
            result = CliRunner().invoke(cli, words, standalone_mode=False, default_map=defaults)
        error = result.exception
        assert error is None or isinstance(error, Exception)
        code = int(result.return_value or 0) if error is None else explain(error)
        return Result(words, code, result.stdout, result.stderr)

    def paste_all(self, text: str) -> dict[str, str]:
        """Returns what each command of a block printed, by command, but for those that repeat what another does."""
        left_out = FIND_THE_SAME | PLAYED_ELSEWHERE
        return {command: self.paste(command) for command in dict.fromkeys(commands(text)) if command not in left_out}

    def watch(self, command: str) -> None:
        """Starts what only Ctrl-C ends, and ends it once the cluster knows of it."""
        with self.start(command) as process:
            deadline = time.monotonic() + DEADLINE_S
            while not json.loads(self.paste("laststand status --json"))["clients"]:
                assert time.monotonic() < deadline, command
                assert process.poll() is None, command
            os.killpg(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=COMMAND_S)
        assert process.returncode == 128 + signal.SIGINT, err
        assert "Traceback" not in err


@pytest.fixture
def reader(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Reader]:
    """Whatever a failed test leaves running is ended."""
    with one_process(tmp_path) as laststand:
        someone = Reader(tmp_path, laststand, has_session="one_session" in request.fixturenames)
        yield someone
        leave_nothing(someone.mark)


def block(name: str) -> str:
    """Returns a block of ``BLOCKS``."""
    (found,) = documented_blocks(*BLOCKS[name])
    return found


def commands(text: str) -> list[str]:
    """Returns the command lines of a block; where some have a prompt, the others are output."""
    lines = [line.partition("  #")[0].rstrip() for line in text.replace("\\\n", " ").splitlines()]
    prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return prompted or [line for line in lines if line and not line.startswith("#")]


def arguments(command: str) -> str:
    """Returns a line's arguments of laststand; those of the last one, if there are several."""
    return re.split(r"(?:^|[ /(])laststand ", command)[-1]


def test_the_demo_is_the_story_that_is_played_elsewhere() -> None:
    demo = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    eras = f"--era {test_story.ISR_ONLY} --era {test_story.ELR}"
    assert demo.stdout.splitlines()[-1] == f".venv/bin/laststand run {test_story.STORY} {eras}"


@in_one_session
def test_a_documented_scenario_can_be_run(reader: Reader) -> None:
    (scenario,) = documented_blocks("docs/first-scenario.md", "name: paused-leader")
    (reader.directory / "paused-leader.yaml").write_text(scenario)
    (told,) = reader.paste_all(block("scenario")).values()
    assert "valid, 0 acks=all records lost, as expected" in told


def test_a_first_scenario_is_begun_and_run(reader: Reader) -> None:
    *_, told = reader.paste_all(block("first scenario")).values()
    assert "valid, 0 acks=all records lost, as expected" in told


@pytest.mark.parametrize("name", ["one rule", "switch"])
def test_a_rule_that_is_switched_off_loses_records(name: str, reader: Reader) -> None:
    assert "VIOLATION" in list(reader.paste_all(block(name)).values())[-1]


def test_two_sets_of_rules_are_compared(reader: Reader) -> None:
    (told,) = reader.paste_all(block("review")).values()
    assert "kip-966               valid, 0 acks=all records lost, as expected" in told
    assert "1010 acks=all records lost (nothing was expected of it)" in told
    assert "decide alike until" in told
    assert "Then kip-966 commits ISR 2, ELR 1, and kip-966 with elr=off ISR 2." in told
    assert "orders-0 has ELR 1 in kip-966, and empty in kip-966 with elr=off." in told
    pages = list(reader.directory.glob("store/kip-966/last-replica-standing/2*/report.html"))
    assert ["Against kip-966" in page.read_text() for page in pages] == [True, True]


def test_suites_are_played_and_what_failed_is_played_again(reader: Reader) -> None:
    (told,) = reader.paste_all(block("suite")).values()
    assert "16 cells: 14 as expected, 2 skipped" in told
    assert (reader.directory / "summary.md").read_text().startswith("| scenario | kafka-3.9 | kip-966 |")
    assert (reader.directory / "junit.xml").read_text().count("<testcase ") == 16
    first, second = reader.paste_all(block("suite again")).values()
    seed = re.search(r"leader-cut-off kip-966[^#]* #1, seed (\d+): violation", first)
    assert seed is not None
    assert "2 cells: 1 as expected, 1 not as expected" in first
    assert f"seed {seed[1]}: violation" in second
    assert "1 cell: 0 as expected, 1 not as expected" in second


def test_random_plans_are_played(reader: Reader) -> None:
    (told,) = reader.paste_all(block("fuzz")).values()
    assert "1 cell: " in told
    assert "failed" not in told


@in_one_session
def test_runs_are_queried_analyzed_and_exported(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "TABLE_NAMES", ("faults", "lost_records"))  # tests/analysis exports all
    story = patient_copy(test_story.STORY, reader.directory, slower=5)
    eras = f"--era {test_story.ISR_ONLY} --era {test_story.ELR}"
    reader.paste(f"laststand run {story.name} {eras} --driver simulator --no-verify")
    told = list(reader.paste_all(block("tables")).values())
    assert test_story.ISR_ONLY in told[0]
    assert "power_loss" in told[1]
    assert (reader.directory / "tables/lost_records").is_dir()
    assert "elr_size" in reader.paste_all(block("analysis")).popitem()[1]
    assert "leaderless" in reader.paste_all(block("query")).popitem()[1]


def test_schedules_are_explored_in_virtual_time(reader: Reader) -> None:
    told = reader.paste_all(block("explore"))
    assert "cluster brokers=" in told["laststand simulate --seeds 9..20 --set elr=off"], (
        "a finding is printed as a plan"
    )


def test_a_standing_cluster_can_be_broken_by_hand_at_full_speed(reader: Reader) -> None:
    *by_hand, verify = commands(block("by hand"))
    candidates = reader.paste("\n".join(("set -e", *by_hand))).partition("WOULD LOSE")[2].splitlines()
    assert "1000 of 1 (paused) from 0 on" in candidates[1]
    verdict = reader.paste(verify)
    assert "VALID: standing" in verdict
    assert "1000 acked, 0 lost" in verdict


def test_the_walk_through_can_be_walked(reader: Reader) -> None:
    told = {}
    for part in ("begin", "leader", "power", "heal", "end"):
        told.update(reader.paste_all(block(f"walk: {part}")))
    assert "500 of 1 (running) from 1000 on" in told["laststand elect-leaders --dry-run --topic orders --partition 0"]
    verdict = told["laststand verify store/standing/latest"]
    assert "acks=all: 1500 records sent, 1500 acked, 0 lost" in verdict
    assert "acks=1: 20 records sent, 20 acked, 20 lost" in verdict


def test_plans_are_written_and_replayed(reader: Reader) -> None:
    (plan,) = documented_blocks("docs/plans.md", "# A follower")
    (reader.directory / "plan.txt").write_text(plan)
    reader.paste_all(block("plans") + block("simulator"))


def test_stories_of_transactions_are_played(reader: Reader) -> None:
    *_, told = reader.paste_all(block("transactions")).values()
    assert "transact orders-" in told, "a finding is printed as a plan"


def test_clusters_with_zookeeper_are_played_and_simulated(reader: Reader) -> None:
    reader.paste_all(block("ZooKeeper"))


def test_a_cluster_around_a_zookeeper_server_is_looked_into(reader: Reader) -> None:
    told = reader.paste_all(block("ZooKeeper server"))
    assert '"isr":[0,2]' in told["laststand inspect /brokers/topics/orders/partitions/0/state"]
    assert "session" in told["laststand chaos expire-session 2"]


@in_one_session
def test_replicas_of_a_real_cluster_are_compared(reader: Reader) -> None:
    unpack("4.2.0", reader.directory / "copies")
    for name in ("real cluster", "autopsy"):
        (told,) = reader.paste_all(block(name)).values()
        assert "electing 3 loses 75 records that broker 1 has, 50 committed" in told
    *_, told = reader.paste_all(block("import")).values()
    assert "broker 3  iiiii" in told
    (told,) = reader.paste_all(block("imported")).values()
    assert "node  records  last" in told


@in_one_session
def test_a_history_from_elsewhere_is_judged_and_queried(reader: Reader) -> None:
    (reader.directory / "docs").symlink_to(ROOT / "docs")
    _, verdict, rows = reader.paste_all(block("histories")).values()
    assert "1 record of orders-0 acknowledged with acks=all, offset 1, is no longer given to consumers" in verdict
    assert "final_read" in rows


def test_unsynced_data_is_lost(reader: Reader) -> None:
    lost, kept = reader.paste_all(block("power loss")).values()
    assert "config: the name is gone" in lost
    assert "nothing was lost" in kept


def test_what_is_needed_is_found_and_the_shell_completes(reader: Reader) -> None:
    *_, setup = commands(block("install"))  # the lines before are what tests/packaging does, with a download
    assert "missing" not in reader.paste(setup)
    for command in commands(block("completion")):
        reader.paste(f"{command}; complete -p laststand")


def test_what_kafkas_tools_do_is_done(reader: Reader) -> None:
    """Each row stands alone: a topic is there, or not, as its command needs it."""
    *rows, up, stop, stop_broker, describe, status, kill = documented_commands_beside_kafkas(f"docs/{FROM_KAFKA}")
    # A hundred partitions come and go: on a busy machine that may keep all brokers from a heartbeat for some seconds.
    reader.paste(f"{up} --set broker.session.timeout.ms=6000 --set broker.heartbeat.interval.ms=250")
    for command in rows:
        reader.paste("laststand topics delete orders --if-exists" if _creates(command) else _MAKE_ORDERS)
        if _needs_ctrl_c(command):
            reader.watch(command)
        else:
            reader.paste(command, stdin=FILES["lines"])
    for command in (kill, "laststand chaos start 1", stop_broker, describe, status, stop):
        reader.paste(command)


_MAKE_ORDERS: Final = "laststand topics create orders --replication-factor 3 --if-not-exists"


def _creates(command: str) -> bool:
    return "topics create" in command


def _needs_ctrl_c(command: str) -> bool:
    return "laststand consume" in command and "--max-messages" not in command and "--timeout-ms" not in command


def test_every_command_that_is_shown_is_pasted_or_plays_what_another_test_plays() -> None:
    pasted = {each for name in BLOCKS for each in shown_commands(f"```\n{block(name)}```")}
    shown = {each for path, each in SHOWN if path.name not in ELSEWHERE}
    assert {each for each in shown - pasted if not _is_played_elsewhere(each)} == set()


def _is_played_elsewhere(command: tuple[str, ...]) -> bool:
    """Returns whether it is ``run SCENARIO --era ERA...``, each played as expected, or another test's.

    The compose file that is printed is compared with ``docker/compose.yaml``; ``tests/clients`` points clients of Kafka
    at a cluster, on free ports.
    """
    match command:
        case ("run", _, "--driver", "kafka", "--kafka", _, *_):
            return True  # on Apache Kafka, as those of kafka-hazards.md
        case ("replay", _, "--driver", "process", "--own-waits"):
            return True  # tests/tla/test_plans.py plays such plans on processes
        case ("up", "--kafka-port", _) | ("topics", "create", "orders", "--replication-factor", "3"):
            return True
        case ("compose", *_):
            return True
        case ("run", name, "--era", era, "--repeat", _):
            return _is_expected(name, era)
        case ("run", name, "--era", era, "--against", "--era", other):
            return _is_expected(name, era, other)
        case ("run", name, *options) if set(options[::2]) == {"--era"}:
            return _is_expected(name, *options[1::2])
        case _:
            return False


def _is_expected(name: str, *eras: str) -> bool:
    """Returns whether virtual time plays a scenario in these eras, and compares the outcome with the expected one."""
    return name in scenario_names() and set(eras) <= set(eras_of(name))

"""``laststand power-loss`` takes from programs what they had not synced, and refuses those that it cannot watch."""

import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from laststand.emulator.cluster.sync_shim import find_sync_shim
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core.errors import MissingToolError

ROWS = 5

DATABASE = """\
import sqlite3, sys, time
database = sqlite3.connect("rows.db", isolation_level=None)
for setting in sys.argv[1:]: database.execute(f"PRAGMA {setting}")
database.execute("CREATE TABLE rows (number)")
for number in range(5): database.execute("INSERT INTO rows VALUES (?)", (number,))
print("committed", flush=True)
time.sleep(60)
"""

REPLACE = """\
import os, sys
for content in (b"old", b"new"):
    file = os.open("config.tmp", os.O_WRONLY | os.O_CREAT)
    os.write(file, content); os.fsync(file); os.close(file)
    os.rename("config.tmp", "config")
    if content == b"old" or "sync-directory" in sys.argv: os.fsync(os.open(".", os.O_RDONLY))
"""


class Trial:
    """A directory of its own, in which power is lost."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "data"
        self.folder.mkdir()

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "laststand.cli", "power-loss", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def run_python(self, program: str, *arguments: str, options: tuple[str, ...] = ()) -> None:
        done = self.run(*options, "--", sys.executable, "-I", "-S", "-c", program, *arguments)
        assert done.returncode == 0, done.stderr

    def check_refused(self, reason: str, *command: str, code: int = 2) -> None:
        done = self.run("--", *command)
        assert (done.returncode, done.stdout) == (code, "")
        assert reason in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture(scope="module", autouse=True)
def _library() -> None:
    try:
        find_sync_shim()
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        (("synchronous=OFF",), 0),
        (("synchronous=FULL",), ROWS - 1),  # the removal of its journal is not synced: see docs/power-loss.md
        (("synchronous=EXTRA",), ROWS),
        (("journal_mode=TRUNCATE", "synchronous=FULL"), ROWS),
        (("journal_mode=WAL", "synchronous=NORMAL"), 0),
        (("journal_mode=WAL", "synchronous=FULL"), ROWS),
    ],
)
def test_sqlite_keeps_the_transactions_that_its_settings_sync(
    trial: Trial, settings: tuple[str, ...], left: int
) -> None:
    trial.run_python(DATABASE, *settings, options=("--after-output", "committed"))
    with sqlite3.connect(trial.folder / "rows.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        has_table = database.execute("SELECT count(*) FROM sqlite_master").fetchall() == [(1,)]
        rows = database.execute("SELECT number FROM rows ORDER BY number").fetchall() if has_table else []
    database.close()
    assert rows == [(number,) for number in range(left)]


@pytest.mark.parametrize("disk", ["ext4", "xfs"])
def test_a_removal_is_durable_where_a_later_sync_commits_it(trial: Trial, disk: str) -> None:
    """One transaction after another: only the last one's journal comes back."""
    trial.run_python(DATABASE, "synchronous=FULL", options=("--after-output", "committed", "--disk", disk))
    with sqlite3.connect(trial.folder / "rows.db") as database:
        assert database.execute("SELECT count(*) FROM rows").fetchall() == [(ROWS - 1,)]
    database.close()


def test_other_children_of_the_process_are_not_killed(trial: Trial) -> None:
    power_loss = shlex.join([sys.executable, "-m", "laststand.cli", "power-loss", "--", "true"])
    command = f"sleep 60 >&- 2>&- & echo $!; exec {power_loss}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=trial.folder, capture_output=True, text=True, timeout=30, check=False
    )
    os.kill(int(done.stdout), signal.SIGKILL)  # it is there
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "this process has other children, which would be killed, too" in done.stderr


def test_a_rename_is_undone_unless_its_directory_was_synced(trial: Trial) -> None:
    trial.run_python(REPLACE)
    assert (trial.folder / "config").read_bytes() == b"old"
    assert trial.names() == ["config", "config.tmp"]


def test_a_rename_stays_once_its_directory_was_synced(trial: Trial) -> None:
    trial.run_python(REPLACE, "sync-directory")
    assert (trial.folder / "config").read_bytes() == b"new"
    assert trial.names() == ["config"]


def test_what_was_there_before_is_durable_and_what_is_lost_is_listed(trial: Trial) -> None:
    (trial.folder / "log").write_bytes(b"before")
    done = trial.run("--json", "--", "sh", "-c", "echo more >> log; echo new > other; echo said")
    assert done.returncode == 0
    assert done.stderr == "said\n"
    report = json.loads(done.stdout)["report"]
    assert report["lost_names"] == [{"path": str(trial.folder / "other"), "fate": "vanished"}]
    assert [(loss["length_before"], loss["length_after"]) for loss in report["lost_bytes"]] == [(11, 6)]
    assert (trial.folder / "log").read_bytes() == b"before"
    assert list(trial.folder.parent.iterdir()) == [trial.folder], "the ledger is gone"


def test_all_processes_of_the_program_are_killed(trial: Trial) -> None:
    program = "(sleep 60 & echo ready; wait) & wait"
    done = trial.run("--json", "--after-output", "ready", "--", "sh", "-c", program)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["exit_code"] is None
    assert outcome["killed"] == 3


def test_power_is_lost_when_the_time_has_come(trial: Trial) -> None:
    done = trial.run("--json", "--after", "0.3", "--", "sleep", "60")
    assert done.returncode == 0, done.stderr
    assert 0.3 <= json.loads(done.stdout)["after_s"] < 30


@pytest.mark.parametrize(("content", "code"), [("old", 0), ("new", 1)])
def test_a_program_that_is_started_again_decides(trial: Trial, content: str, code: int) -> None:
    (trial.folder / "config").write_text("old\n")
    program = f"test -e begun && exec grep {content} config; touch begun; sync begun; echo new > config"
    done = trial.run("--restart", "--", "sh", "-c", program)
    assert done.returncode == code, done.stderr


def test_a_program_that_ends_before_its_moment_is_not_cut(trial: Trial) -> None:
    done = trial.run("--after-output", "ready", "--", "sh", "-c", "echo new > log; exit 3")
    assert done.returncode == 2
    assert "it ended with exit code 3 before the time had come; nothing was cut" in done.stderr
    assert trial.names() == ["log"]


def test_a_static_program_is_refused(trial: Trial, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    source, program = tmp_path / "static.c", tmp_path / "static"
    source.write_text('#include <fcntl.h>\nint main(void) { return creat("made", 0644) < 0; }\n')
    built = compiler and subprocess.run([compiler, "-static", "-o", program, source], capture_output=True, check=False)
    if not built or built.returncode != 0:
        pytest.skip("the C library here cannot be linked statically")
    trial.check_refused("it is linked statically", str(program), code=254)
    trial.check_refused("something that does not write through the C library has made", "sh", "-c", f"{program}; true")


def test_a_go_program_is_refused(trial: Trial) -> None:
    try:
        program = find_toxiproxy()
    except MissingToolError as error:
        pytest.skip(str(error))
    trial.check_refused("it is a Go program, which calls the kernel itself", str(program), code=254)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("os.open('log', os.O_WRONLY | os.O_CREAT | os.O_DIRECT)", "it uses O_DIRECT"),
        ("ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(512))", "it uses io_uring"),
        ("os.link('log', 'second')", "it uses a second name of a file"),
    ],
)
def test_calls_that_are_not_modelled_are_refused(trial: Trial, program: str, reason: str) -> None:
    (trial.folder / "log").write_bytes(b"")
    trial.check_refused(reason, sys.executable, "-I", "-S", "-c", f"import ctypes, os; {program}")


def test_bytes_that_are_changed_through_a_mapping_are_said_not_to_be_modelled(trial: Trial) -> None:
    (trial.folder / "index").write_bytes(bytes(4096))
    program = "import mmap, os; mmap.mmap(os.open('index', os.O_RDWR), 4096)[:4] = b'0123'"
    done = trial.run("--", sys.executable, "-I", "-S", "-c", program)
    assert "not modelled: bytes that are changed through a shared mapping: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "Missing argument 'COMMAND...'"),
        (("--", "no-such-program"), "there is no such file that may be executed"),
        (("--after", "1", "--after-output", "ready", "--", "true"), "expected one of them"),
        (("--after-output", "", "--", "true"), "--after-output needs a text"),
        (("--keep", "all", "--", "true"), "'all' is not one of 'none', 'prefix', 'torn', 'pages'"),
        (("--bogus", "true"), "No such option '--bogus'"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(trial: Trial, arguments: tuple[str, ...], complaint: str) -> None:
    done = trial.run(*arguments)
    assert (done.returncode, done.stdout) == (254, "")
    assert complaint in done.stderr


def test_a_directory_with_two_names_of_a_file_is_refused(trial: Trial) -> None:
    (trial.folder / "one").write_bytes(b"")
    (trial.folder / "two").hardlink_to(trial.folder / "one")
    trial.check_refused("expected one name for each file in it", "true", code=254)

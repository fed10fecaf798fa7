"""The program in front of a child's command line."""

import os
import subprocess
import sys

from laststand.emulator import parent_death
from laststand.emulator.parent_death import die_with_parent


def test_the_command_runs_with_its_arguments_and_keeps_its_exit_code() -> None:
    answer = subprocess.run(die_with_parent(["sh", "-c", 'echo "$0"; exit 5', "a b"]), capture_output=True, check=False)
    assert (answer.returncode, answer.stdout) == (5, b"a b\n")


def test_a_child_whose_owner_is_gone_never_becomes_the_command() -> None:
    # The owner named here is not the parent, as when the parent died before the kernel was asked.
    command = [sys.executable, "-I", "-S", str(parent_death.__file__), str(os.getppid()), "echo", "alive"]
    answer = subprocess.run(command, capture_output=True, check=False)
    assert (answer.returncode, answer.stdout) == (125, b"")


def test_a_command_that_does_not_exist_is_named() -> None:
    answer = subprocess.run(die_with_parent(["/no/such/program"]), capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (127, "/no/such/program: No such file or directory\n")

"""Runs tests against a mutant: mutmut's runner without what makes it slow.

mutmut forks a process per mutant, in which pytest collects that mutant's tests before it runs them, and each call of a
function that has mutants asks the environment which of them is meant. Both take longer than the tests themselves. Here
the parent collects all tests once, and the child gives the function the code of its mutant and runs what reaches it.
"""

import sys
import time
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, FunctionType
from typing import Final

import mutmut.mutation.trampoline
import pytest
from _pytest.config import _prepareconfig
from _pytest.runner import runtestprotocol
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.utils.file_utils import change_cwd
from mutmut.utils.format_utils import mangled_name_from_mutant_name
from mutmut.workers.isolation import run_in_fork

SUSPICIOUS: Final = 35
"""mutmut's exit code for a mutant of which nothing is known."""

_ORIGINAL: Final = "_mutmut_orig"


class MutableFunction:
    """A function that has mutants, by their names within the module."""

    def __init__(self, function: FunctionType, mutants: dict[str, FunctionType]) -> None:
        self._function = function
        self._mutants = mutants

    @property
    def code(self) -> CodeType:
        """The code that it runs at present."""
        return self._function.__code__

    @property
    def key(self) -> str:
        """Its name in mutmut's statistics."""
        return f"{self._function.__module__}.{mangled_name_from_mutant_name(self._mutants[_ORIGINAL].__name__)}"

    def become(self, mutant_name: str) -> bool:
        """Runs a mutant's code from now on; returns whether the name is that of one of its mutants."""
        module, _, name = mutant_name.rpartition(".")
        mutant = self._mutants.get(name) if module == self._function.__module__ else None
        if mutant is None:
            return False
        self._function.__code__ = mutant.__code__
        self._function.__defaults__ = mutant.__defaults__
        self._function.__kwdefaults__ = mutant.__kwdefaults__
        return True

    def fail(self) -> None:
        """Raises whenever it is called, from now on."""
        if not self.code.co_freevars:
            self._function.__code__ = _fail.__code__
            self._function.__kwdefaults__ = None


def _fail(*_args: object, **_kwargs: object) -> None:
    raise AssertionError("all that has mutants fails")


FUNCTIONS: Final[list[MutableFunction]] = []
"""All that modules with mutants have defined; they do so when tests are collected."""


def note_function(
    mutants: dict[str, FunctionType], is_classmethod: object = None
) -> Callable[[FunctionType], FunctionType]:
    """Stands for mutmut's decorator of functions that have mutants: notes the function and leaves it as it is."""

    def decorate(function: FunctionType) -> FunctionType:
        FUNCTIONS.append(MutableFunction(function, mutants))
        return function

    return decorate


class CollectedRunner(PytestRunner):
    """Runs tests that were collected before the first of them ran."""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[str, pytest.Item] = {}

    def run_stats(self, *, tests: Iterable[str]) -> int:
        """Runs tests, all where none are named; notes which functions each of them reaches, and how long it takes."""
        self._collect()
        keys = {function.code: function.key for function in FUNCTIONS}
        reached: set[str] = set()

        def profile(frame: FrameType, event: str, _argument: object) -> None:
            if event == "call" and (key := keys.get(frame.f_code)) is not None:
                reached.add(key)

        for test in list(tests) or list(self._items):
            reached.clear()
            sys.setprofile(profile)
            begun = time.process_time()
            exit_code = self._run(test)
            state().duration_by_test[test] = time.process_time() - begun
            sys.setprofile(None)
            if exit_code is not pytest.ExitCode.OK:
                return int(exit_code)
            for key in reached:
                state().tests_by_mangled_function_name[key].add(test)
        return int(pytest.ExitCode.OK)

    def run_tests(self, *, mutant_name: str | None, tests: Iterable[str]) -> int:
        """Runs tests in this order, or all where none are named, until one fails; returns pytest's exit code."""
        self._collect()
        if mutant_name is not None and not self._become(mutant_name):
            return SUSPICIOUS
        for test in list(tests) or list(self._items):
            exit_code = self._run(test)
            if exit_code is not pytest.ExitCode.OK:
                return int(exit_code)
        return int(pytest.ExitCode.OK)

    def _become(self, mutant_name: str) -> bool:
        try:
            return sum(function.become(mutant_name) for function in FUNCTIONS) == 1
        except ValueError:  # the mutant uses other variables of the scopes around it
            return False

    def run_forced_fail(self) -> int:
        """Runs all tests with functions that fail, until one of them notices; returns pytest's exit code."""
        self._collect()

        def run() -> int:
            for function in FUNCTIONS:
                function.fail()
            return self.run_tests(mutant_name=None, tests=())

        return run_in_fork(run)

    def _run(self, test: str) -> pytest.ExitCode:
        with change_cwd("mutants"):
            reports = runtestprotocol(self._items[test], log=False, nextitem=None)
        is_failed = any(report.failed for report in reports)
        return pytest.ExitCode.TESTS_FAILED if is_failed else pytest.ExitCode.OK

    def _collect(self) -> None:
        # What pytest.main does up to the first test. It is never torn down: the process ends, and its children do.
        if self._items:
            return
        mutmut.mutation.trampoline.wrap_in_trampoline = note_function  # type: ignore[assignment]
        with change_cwd("mutants"):
            arguments = ["--rootdir=.", "--capture=no", "-qq", *self._pytest_add_cli_args]
            config = _prepareconfig([*arguments, *self._pytest_add_cli_args_test_selection])
            config._do_configure()
            session = pytest.Session.from_config(config)
            config.hook.pytest_sessionstart(session=session)
            config.hook.pytest_collection(session=session)
        self._items = {item.nodeid: item for item in session.items}

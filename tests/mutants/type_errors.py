"""Mutants that mypy refuses: ``make check`` does not get as far as the tests with those.

mutmut's own filter parses every generated file for the lines of its functions, which takes minutes for the core. It has
written these lines down already when it generated the files.
"""

from collections.abc import Iterable
from pathlib import Path

from mutmut.configuration import config
from mutmut.mutation.data import LineSpan, MutantLineSpans
from mutmut.mutation.file_mutation import FailedTypeCheckMutant, MutatedMethodLocation
from mutmut.type_checking import run_type_checker
from mutmut.utils.file_utils import change_cwd
from mutmut.utils.format_utils import get_mutant_name


class TypeErrors:
    """The type check of all mutants at once.

    Attributes:
        found: names of the mutants that did not pass.
    """

    def __init__(self) -> None:
        self.found: set[str] = set()

    def arguments(self, files: Iterable[Path]) -> list[str]:
        """Returns what Python is started with to check these files, in which each ``__init__`` stands several times."""
        options = ["--output=json", "--disable-error-code=unused-ignore", "--disable-error-code=no-redef"]
        return ["-m", "mypy", *options, *map(str, files)]

    def find(self) -> dict[str, FailedTypeCheckMutant]:
        """Returns the mutants that do not pass, with the last error of each; stands for mutmut's function.

        Raises:
            ValueError: an error is in no mutant, so what was generated is wrong for another reason.
        """
        root = Path("mutants").absolute()
        with change_cwd("mutants"):
            errors = run_type_checker(config().type_check_command)
        refused: dict[str, FailedTypeCheckMutant] = {}
        spans: dict[Path, dict[str, LineSpan]] = {}
        for error in errors:
            path = error.file_path.relative_to(root)
            if path not in spans:
                index = MutantLineSpans.load(path)
                spans[path] = {} if index is None else dict(index.span_by_function_name)
            found = [name for name, span in spans[path].items() if span.start <= error.line_number <= span.end]
            if len(found) != 1 or found[0].endswith("_orig"):
                raise ValueError(f"{path}:{error.line_number}: {error.error_description}")
            span = spans[path][found[0]]
            place = MutatedMethodLocation(path, found[0], span.start, span.end)
            name = get_mutant_name(path, found[0])
            refused[name] = FailedTypeCheckMutant(method_location=place, name=name, error=error)
        self.found = set(refused)
        return refused

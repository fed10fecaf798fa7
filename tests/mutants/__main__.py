"""Mutates the core and runs the fast tests against each mutant: ``make mutants``.

mutmut makes the mutants; ``[tool.mutmut]`` in pyproject.toml says of what, and which tests may kill them. What neither
mypy nor these tests refuse has survived. Survivors are printed by file, and are a failure unless ``explained.txt`` says
why they may live. What was killed once is not tried again until its function changes; ``make clean`` forgets that.
``mutmut show`` and ``mutmut browse`` work on the results.
"""

import argparse
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import mutmut.__main__
import mutmut.workers.isolation
from mutmut.configuration import config
from mutmut.mutation.data import MutantLineSpans, SourceFileMutationData
from mutmut.mutation.diff_apply import generated_function_names
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import orig_function_and_class_names_from_key

from tests.mutants.collected_runner import CollectedRunner
from tests.mutants.judged import Judged
from tests.mutants.survivors import Change, ExplanationError, change_between, read_explained
from tests.mutants.type_errors import TypeErrors

RESULTS: Final = Path("mutants")
EXPLAINED: Final = Path("tests/mutants/explained.txt")
JUDGED: Final = Path("tests/mutants/judged.txt")
_SURVIVED: Final = ("survived", "no tests")
_KILLED: Final = ("killed", "timeout", "caught by type check")
_CAUGHT_BY_TYPE_CHECK: Final = 37


def changed_files(since: str) -> set[Path] | None:
    """Returns the files that differ from a commit, new ones included; ``None`` where git cannot tell."""
    commands = (["diff", "--name-only", since, "--"], ["ls-files", "--others", "--exclude-standard"])
    listings = [subprocess.run(["git", *command], capture_output=True, text=True) for command in commands]
    if any(listing.returncode != 0 for listing in listings):
        return None
    return {Path(name) for listing in listings for name in listing.stdout.splitlines()}


def mutated_files() -> list[Path]:
    """Returns the files that the configuration wants mutants of."""
    paths = (path for folder in config().source_paths for path in sorted(folder.rglob("*.py")))
    return [path for path in paths if config().should_mutate(path)]


def within(files: Sequence[Path], lines: int) -> tuple[list[Path], list[Path]]:
    """Returns the smallest files that have so many lines together, and the others; the smallest one in any case."""
    taken: list[Path] = []
    left: list[Path] = []
    for path in sorted(files, key=_lines_of):
        fits = sum(map(_lines_of, (*taken, path))) <= lines
        (taken if fits or not taken else left).append(path)
    return taken, left


def _lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def results_of(path: Path) -> SourceFileMutationData:
    """Returns the verdicts on a file's mutants."""
    results = SourceFileMutationData(path=path)
    results.load()
    return results


def run_mutants(files: Sequence[Path]) -> None:
    """Has mutmut make and try the mutants of these files; what survived before is tried again."""
    shutil.rmtree(RESULTS / "tests", ignore_errors=True)
    (RESULTS / "mutmut-stats.json").unlink(missing_ok=True)
    for path in files:
        made = RESULTS / path
        if made.exists() and made.read_bytes() == path.read_bytes():
            made.unlink()  # a run without this file left a copy that mutmut would take for its mutants
        _judge(path, {name: None for name, status in statuses_of(path).items() if status not in _KILLED})
    type_errors = TypeErrors()
    config().only_mutate = [str(path) for path in files]
    config().type_check_command = [sys.executable, *type_errors.arguments(files)]
    mutmut.workers.isolation.PytestRunner = CollectedRunner  # type: ignore[attr-defined]
    mutmut.__main__.filter_mutants_with_type_checker = type_errors.find  # type: ignore[attr-defined]
    mutmut.__main__.run.main(["--max-children", "1"], standalone_mode=False)
    for path in files:  # mutmut asks for tests first
        _judge(path, dict.fromkeys(type_errors.found & statuses_of(path).keys(), _CAUGHT_BY_TYPE_CHECK))


def statuses_of(path: Path) -> dict[str, str]:
    """Returns what became of a file's mutants, by their names."""
    return {name: status_by_exit_code[exit_code] for name, exit_code in results_of(path).exit_code_by_key.items()}


def _judge(path: Path, exit_codes: dict[str, int | None]) -> None:
    if exit_codes:
        results = results_of(path)
        results.exit_code_by_key.update(exit_codes)
        results.save()


def changes_in(path: Path, names: Sequence[str]) -> Iterator[Change]:
    """Yields what the mutants of these names change in a file."""
    spans = MutantLineSpans.load(path)
    for name in names:
        assert spans is not None, f"{path} has mutants, but no index of them"
        function, class_name = orig_function_and_class_names_from_key(name)
        generated = generated_function_names(name)
        sources = zip(spans.read_function_sources(generated), generated, strict=True)
        original, mutant = (source.replace(made, function, 1) for source, made in sources)
        yield change_between(str(path), f"{class_name}.{function}" if class_name else function, original, mutant)


def report(files: Sequence[Path]) -> int:
    """Prints survivors by file, then what became of the mutants of each folder; returns the exit code."""
    explained = read_explained(EXPLAINED)
    totals: dict[Path, Counter[str]] = {}
    survivors: set[Change] = set()
    for path in files:
        statuses = statuses_of(path)
        totals.setdefault(path.parent, Counter()).update(statuses.values())
        survivors |= set(changes_in(path, [name for name, status in statuses.items() if status in _SURVIVED]))
    new = sorted(change for change in survivors if not explained.explain(change))
    for change in new:
        sys.stdout.write(f"\n{change.describe()}\n")
    sys.stdout.write("\n")
    for folder, counts in totals.items():
        told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        sys.stdout.write(f"{folder}: {counts.total()} mutants: {told}\n")
    sys.stdout.write(f"{len(survivors)} different survivors: {len(survivors) - len(new)} explained, {len(new)} not\n")
    is_complete = all(counts.keys() <= {*_SURVIVED, *_KILLED} for counts in totals.values())
    return 0 if is_complete and not new else 1


def main() -> int:
    """Returns 1 where a mutant survived without explanation, 254 for what the caller can mend."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--since", metavar="REV", help="only files that differ from this commit")
    parser.add_argument("--unjudged", action="store_true", help="only files that differ from what was judged")
    parser.add_argument(
        "--lines", type=int, metavar="N", help="of these as many as have N lines, small ones first; 1 if some are left"
    )
    parser.add_argument("--report", action="store_true", help="of the results at hand, without a run")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="these; if none, all that are configured")
    options = parser.parse_args()
    files = mutated = mutated_files()
    if options.files:
        files = [path for path in files if path in options.files]
    if options.since is not None:
        changed = changed_files(options.since)
        if changed is None:
            sys.stdout.write(f"mutants: git knows no commit {options.since} here\n")
            return 254
        files = [path for path in files if path in changed]
    judged = Judged.read(JUDGED)
    left: list[Path] = []
    if options.unjudged:
        files = judged.without(files)
        if options.lines is not None:
            files, left = within(files, options.lines)
            for path in left:
                sys.stdout.write(f"mutants: {path} is not judged, and too much is: run `make mutants FILES={path}`\n")
        for path in files:
            sys.stdout.write(f"mutants: {path} is not judged as it is\n")
    if not files:
        sys.stdout.write("mutants: of the files that are mutated, none is meant\n")
        return 0
    try:
        read_explained(EXPLAINED)
        if not options.report:
            run_mutants(files)
        exit_code = report(files)
        if exit_code == 0:
            judged.note(files, among=mutated)
        return exit_code or bool(left)
    except ExplanationError as error:
        sys.stdout.write(f"mutants: {error}\n")
        return 254


if __name__ == "__main__":
    sys.exit(main())

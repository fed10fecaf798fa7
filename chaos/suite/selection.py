"""Selects the scenarios of a suite: files, folders, names of bundled scenarios, and files that list any of these.

A suite file is YAML::

    suite: smoke
    eras: [kafka-3.9, kip-966]             # where the command line names none
    scenarios:                             # relative to this file, or by name
      - kip-966/last-replica-standing
      - mine/
      - another-suite.yaml
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from laststand.chaos.play.expressible import check_expected_eras
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.scenario.scenario_file import SCENARIOS, read_scenario, read_text, scenario_names
from laststand.emulator.core.eras import ALL_ERAS
from laststand.emulator.core.errors import ConfigError, EmulatorError, suggestion
from laststand.emulator.plan.yaml_cursor import Cursor, ScenarioError, open_document
from laststand.emulator.user_files import read_bytes

SUITES: Final = Path(__file__).parents[1] / "suites"
"""The folder in which suite files are found by name."""

_IS_SUITE: Final = re.compile(r"^suite:", re.MULTILINE)
_SUFFIXES: Final = (".yaml", ".yml")
_IS_OURS: Final = re.compile(rb"^(suite|cluster|workload):|(?s:^name:.*^steps:)", re.MULTILINE)
"""Keys of a scenario or suite file; a folder may hold other YAML, such as compose files, or pipelines with steps."""


@dataclass(frozen=True, kw_only=True)
class Selected:
    """A scenario of a suite.

    Attributes:
        eras: those that its suite file names; empty without one.
    """

    scenario: Scenario
    eras: tuple[str, ...] = ()


def select(names: Sequence[str]) -> tuple[Selected, ...]:
    """Returns all scenarios that names stand for, each file once, in the order of the names.

    Args:
        names: files, folders (with all below them), names under ``chaos/scenarios`` or ``chaos/suites``.

    Raises:
        ConfigError: there is no such name, a folder has no scenario, or two scenarios have one name.
        ScenarioError: a file cannot be played.
    """
    found: dict[Path, Selected] = {}
    for problem in _add_all(found, names):
        raise problem
    return tuple(found.values())


def check_all(names: Sequence[str]) -> tuple[int, list[str]]:
    """Reads all scenarios that names stand for, and continues after invalid ones.

    Returns:
        The number of valid scenarios, and a line about each invalid one.
    """
    found: dict[Path, Selected] = {}
    problems = [str(problem) for problem in _add_all(found, names)]
    return len(found), problems


def suite_names() -> list[str]:
    """Returns the names under which suite files are found, sorted."""
    return sorted(path.relative_to(SUITES).with_suffix("").as_posix() for path in SUITES.rglob("*.yaml"))


def _add_all(found: dict[Path, Selected], names: Sequence[str]) -> Iterator[EmulatorError]:
    """Adds the scenarios that names stand for; yields errors, and continues after them."""
    for name in names:
        try:
            paths = _files(name, near=Path())
        except ConfigError as error:
            yield error
            continue
        for path in paths:
            try:
                _add(found, path, eras=(), within=())
            except ScenarioError as error:
                yield error
    try:
        _check_names(found)
    except ScenarioError as error:
        yield error


def _files(name: str, *, near: Path) -> list[Path]:
    for place in (near, SCENARIOS, SUITES):
        path = place / name
        if path.is_dir():
            below = sorted(_below(path))
            if not below:
                raise ConfigError(key="scenario", value=str(path), expected="a folder with scenarios, files *.yaml")
            return below
        for file in (path, place / f"{name}.yaml"):
            if file.is_file() or file.is_symlink():  # reading reports a link that leads nowhere
                return [file]
    if name.endswith(_SUFFIXES) or name.startswith((".", "/")):
        raise ConfigError(key="scenario", value=name, expected="a file or folder that exists: there is none")
    known = [*scenario_names(), *suite_names()]
    raise ConfigError(
        key="scenario",
        value=name,
        expected=f"a file, a folder, a name that laststand scenarios lists, or a suite: {', '.join(suite_names())}"
        f"{suggestion(name, known)}",
    )


def _below(folder: Path) -> Iterator[Path]:
    """Yields the files of a folder that are scenarios or suites, well written or not.

    Hidden folders are left out, and run directories: their plans are records, not scenarios that a user wrote.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(".") and not _is_run(Path(place) / each)]
        for name in names:
            path = Path(place) / name
            if path.suffix in _SUFFIXES and not name.startswith(".") and _is_ours(path):
                yield path


def _is_ours(path: Path) -> bool:
    try:
        return _IS_OURS.search(read_bytes(path)) is not None
    except OSError:
        return True  # reading it again reports why it cannot be read


def _is_run(folder: Path) -> bool:
    return (folder / "events").is_dir() or (folder / "cluster.yaml").is_file()


def _add(found: dict[Path, Selected], path: Path, *, eras: tuple[str, ...], within: tuple[Path, ...]) -> None:
    """Adds the scenarios that a file stands for; ``within`` are the suite files that lead to it."""
    resolved = path.resolve()
    text = read_text(path)
    if not _IS_SUITE.search(text):
        known = found.get(resolved)
        scenario = _read(path, text) if known is None else known.scenario
        found[resolved] = Selected(scenario=scenario, eras=_both(() if known is None else known.eras, eras))
        return
    with open_document(path, text).fields() as top:
        top.required("suite").text()
        listed, members = top.optional("eras"), top.required("scenarios").items()
    own = () if listed is None else tuple(era.choice(ALL_ERAS) for era in listed.items())
    for member in members:
        for file in _member_files(member, near=path.parent):
            if file.resolve() in (*within, resolved):
                member.fail(f"{member.text()} leads back to this suite")
            _add(found, file, eras=own or eras, within=(*within, resolved))


def _read(path: Path, text: str) -> Scenario:
    scenario = read_scenario(path, text)
    check_expected_eras(scenario)
    return scenario


def _member_files(member: Cursor, *, near: Path) -> list[Path]:
    try:
        return _files(member.text(), near=near)
    except ConfigError as error:
        member.fail(f"{error.value!r} is nothing to play, expected {error.expected}")


def _both(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _check_names(found: dict[Path, Selected]) -> None:
    paths: dict[str, Path] = {}
    for selected in found.values():
        scenario = selected.scenario
        other = paths.setdefault(scenario.name, scenario.path)
        if other is not scenario.path:
            raise ScenarioError(
                path=scenario.path, line=1, key="name", reason=f"{scenario.name!r} is the name of {other}, too"
            )

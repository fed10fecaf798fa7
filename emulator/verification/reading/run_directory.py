"""Finds a run's inputs.

::

    store/<scenario>/<timestamp>/
        cluster.yaml        era, seed, start and duration
        scenario.yaml       name of the scenario
        events/<node>-<incarnation>.jsonl, or .packed
        history.packed      and history/<client>.packed, where clients come and go; or .jsonl
        nodes/<id>/data/<topic>-<partition>/*.log

Missing inputs are no error here: they are evidence that is missing, and ``doubts.evidence`` turns that into
``unknown``. Only a directory that is no run at all is refused.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import yaml

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.packed.layout import SUFFIX
from laststand.emulator.user_files import read_text
from laststand.emulator.user_yaml import load_yaml

IMPORTED: Final = "imported"
"""The driver of a run that was made from the logs of a real cluster."""

_DESCRIPTIONS: Final = ("cluster.yaml", "scenario.yaml")
_LEVELS_MAX: Final = 5
"""A store has three: the folder and the name of a scenario, and the time of a run."""

_NODE: Final = re.compile("[0-9]{1,10}")

_Entry = TypeVar("_Entry", str, int, float)


class RunDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """The places of the inputs of one run.

    Attributes:
        path: the directory, links resolved.
        scenario: its name, from ``scenario.yaml`` or else the directory above.
        era: from ``cluster.yaml``; ``None`` if that names none.
        changed: the run's changes of the era's rules and the scenario's properties, from ``cluster.yaml``.
        report: additional reports that its scenario asks for, from ``scenario.yaml``.
        may_miss_steps: whether a missed step is no doubt: neither a barrier that was not reached, nor a hold that met
            no message (``missed_step: end`` in ``scenario.yaml``).
        seed: of its random choices, by ``cluster.yaml``.
        started: when it began (ISO 8601, UTC), by ``cluster.yaml``.
        duration_s: duration by the machine's clock, from ``cluster.yaml``, which a run completes at its end.
        driver: its driver, from ``cluster.yaml``.
        switches: the rules of the run, from ``cluster.yaml``.
        properties: of every node, by ``cluster.yaml``.
    """

    path: Path
    scenario: str
    era: str | None
    changed: tuple[str, ...] = ()
    report: str | None = None
    may_miss_steps: bool = False
    seed: int | None = None
    started: str | None = None
    duration_s: float | None = None
    driver: str | None = None
    switches: tuple[tuple[str, str], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()

    def descriptions(self) -> tuple[Path, ...]:
        """Returns the harness's descriptions of the run, as far as they exist."""
        return tuple(path for name in _DESCRIPTIONS if (path := self.path / name).is_file())

    @property
    def is_imported(self) -> bool:
        """The run directory was made from the logs of a real cluster, and has no history of clients."""
        return self.driver == IMPORTED

    @property
    def events(self) -> Path:
        """Directory of event files."""
        return self.path / "events"

    @property
    def histories(self) -> tuple[Path, ...]:
        """History files that exist: that of the run's clients, and one for each client that was not the harness's."""
        return (*_line_files(self.path, "history"), *_line_files(self.path / "history", "*"))

    @property
    def nodes(self) -> Path:
        """Directory of the nodes' directories."""
        return self.path / "nodes"

    def event_files(self) -> tuple[Path, ...]:
        """Event files that exist, by name."""
        return _line_files(self.events, "*")

    def node_directories(self) -> tuple[tuple[int, Path], ...]:
        """Node ids and directories that exist, by id."""
        found = [
            (int(path.name), path) for path in self.nodes.glob("*") if _NODE.fullmatch(path.name) and path.is_dir()
        ]
        return tuple(sorted(found))


def _line_files(directory: Path, stem: str) -> tuple[Path, ...]:
    return tuple(sorted(path for suffix in (SUFFIX, ".jsonl") for path in directory.glob(f"{stem}{suffix}")))


def open_run_directory(path: Path) -> RunDirectory:
    """Returns the run at ``path``.

    Raises:
        ConfigError: there is no run at that path.
    """
    resolved = path.resolve()
    if not _is_run(resolved):
        expected = "a run directory (events/, history, nodes/)" if resolved.exists() else "a directory: there is none"
        raise ConfigError(key="run", value=str(path), expected=expected)
    scenario, cluster = _entries(resolved / "scenario.yaml"), _entries(resolved / "cluster.yaml")
    return RunDirectory(
        path=resolved,
        scenario=_entry(scenario, "name", str) or resolved.parent.name,
        era=_entry(cluster, "era", str),
        changed=tuple(_words(cluster, "changed")),
        report=_entry(scenario, "report", str),
        may_miss_steps=_entry(scenario, "missed_step", str) == "end",
        seed=_entry(cluster, "seed", int),
        started=_entry(cluster, "started", str),
        duration_s=_entry(cluster, "duration_s", float),
        driver=_entry(cluster, "driver", str),
        switches=tuple(_texts(cluster, "switches", on="on", off="off")),
        properties=tuple(_texts(cluster, "properties", on="true", off="false")),
    )


def runs_below(directory: Path) -> Iterator[Path]:
    """Yields the runs up to five levels below a directory, by path; links, such as ``latest``, are not followed."""
    for path, folders, _ in os.walk(directory):
        if is_run := _is_run(Path(path)):
            yield Path(path)
        if is_run or len(Path(path).relative_to(directory).parts) == _LEVELS_MAX:
            folders.clear()  # no directory inside a run is a run
        folders.sort()


def find_runs(path: Path) -> list[Path]:
    """Returns the runs in a directory that holds some; any other path alone."""
    return [path] if _is_run(path) else list(runs_below(path)) or [path]


def _is_run(directory: Path) -> bool:
    return (
        any((directory / name).exists() for name in ("events", "cluster.yaml"))
        or _line_files(directory, "history") != ()
    )


def _words(cluster: Mapping[str, object], key: str) -> Iterator[str]:
    found = cluster.get(key)
    if isinstance(found, list):
        yield from (each for each in found if isinstance(each, str))


def _texts(cluster: Mapping[str, object], key: str, *, on: str, off: str) -> Iterator[tuple[str, str]]:
    found = cluster.get(key)
    for name, value in found.items() if isinstance(found, dict) else ():
        # YAML takes on, off, true and false that stand by themselves for truth values.
        yield str(name), (on if value else off) if isinstance(value, bool) else str(value)


def _entries(path: Path) -> Mapping[str, object]:
    try:
        document = load_yaml(read_text(path))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    return document if isinstance(document, dict) else {}


def _entry(document: Mapping[str, object], key: str, kind: type[_Entry]) -> _Entry | None:
    value = document.get(key)
    return value if isinstance(value, kind) else None

"""Finds a run's inputs.

::

    store/<scenario>/<timestamp>/
        cluster.yaml        era, nodes (names only are read here)
        scenario.yaml       name of the scenario
        events/<node>-<incarnation>.jsonl
        history.jsonl       and history/<client>.jsonl, where clients come and go
        nodes/<id>/data/<topic>-<partition>/*.log

Missing inputs are no error here: they are evidence that is missing, and ``evidence`` turns that into ``unknown``. Only
a directory that is no run at all is refused.
"""

from pathlib import Path

import msgspec
import yaml

from emulator.core.errors import ConfigError


class RunDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """Where the inputs of one run are.

    Attributes:
        path: the directory, links resolved.
        scenario: its name, by ``scenario.yaml`` or else by the directory above.
        era: by ``cluster.yaml``; ``None`` where that says nothing.
        report: what its scenario wants to be told beside the verdict, by ``scenario.yaml``.
    """

    path: Path
    scenario: str
    era: str | None
    report: str | None = None

    @property
    def events(self) -> Path:
        """Directory of event files."""
        return self.path / "events"

    @property
    def history(self) -> Path:
        """The clients' history."""
        return self.path / "history.jsonl"

    @property
    def histories(self) -> tuple[Path, ...]:
        """History files that exist: that of the run's clients, and one for each client that came by itself."""
        found = (self.history, *sorted((self.path / "history").glob("*.jsonl")))
        return tuple(path for path in found if path.exists())

    @property
    def nodes(self) -> Path:
        """Directory of the nodes' directories."""
        return self.path / "nodes"

    def event_files(self) -> tuple[Path, ...]:
        """Event files that exist, by name."""
        return tuple(sorted(self.events.glob("*.jsonl")))

    def node_directories(self) -> tuple[tuple[int, Path], ...]:
        """Node ids and directories that exist, by id."""
        found = [(int(path.name), path) for path in self.nodes.glob("*") if path.name.isdigit() and path.is_dir()]
        return tuple(sorted(found))


def open_run_directory(path: Path) -> RunDirectory:
    """Returns the run at ``path``.

    Raises:
        ConfigError: there is no run there.
    """
    resolved = path.resolve()
    if not any((resolved / name).exists() for name in ("events", "history.jsonl", "cluster.yaml")):
        raise ConfigError(key="run", value=str(path), expected="a run directory (events/, history.jsonl, nodes/)")
    return RunDirectory(
        path=resolved,
        scenario=_entry(resolved / "scenario.yaml", "name") or resolved.parent.name,
        era=_entry(resolved / "cluster.yaml", "era"),
        report=_entry(resolved / "scenario.yaml", "report"),
    )


def _entry(path: Path, key: str) -> str | None:
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return None
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, str) else None

"""A run's directory, ``<store>/<scenario>/<timestamp>/``, and the link ``latest`` beside it.

Only its owner can enter it: it holds the cluster's token, and the nodes' logs.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final

import yaml

from laststand.chaos.scenario.scenario import Scenario
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.core.eras import era_rules, rule_texts, with_rule
from laststand.emulator.core.errors import ConfigError, shown
from laststand.emulator.core.switches import Switches
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.path_words import LATEST
from laststand.emulator.user_files import read_text
from laststand.emulator.user_yaml import load_yaml

DIRECTORY_MODE: Final = 0o700
"""The mode of a run's directory."""

MARKER: Final = ".laststand-store"
"""Empty file by which a store is recognised."""


def check_store(store: Path) -> None:
    """Checks that runs can be kept in ``store``.

    Raises:
        ConfigError: the path is not a directory, cannot be written, or holds something other than a store.
    """
    if store.exists() and not store.is_dir():
        raise ConfigError(key="--out", value=str(store), expected="a directory, and this is a file")
    parent = store
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise ConfigError(key="--out", value=str(store), expected=f"a directory that can be written; {parent} cannot")
    if store.exists() and not (store / MARKER).exists() and any(store.iterdir()):
        raise ConfigError(
            key="--out", value=str(store), expected="a new or empty directory, or a store; this one is occupied"
        )


def make_store(store: Path) -> None:
    """Makes a store, if it is none yet.

    Raises:
        OSError: the store cannot be made.
    """
    store.mkdir(parents=True, exist_ok=True)
    (store / MARKER).touch()


def create_run_directory(store: Path, scenario: Scenario, *, now: datetime) -> Path:
    """Makes a run's directory with the scenario's file in it, points ``latest`` to it, and returns it.

    Raises:
        ConfigError: the directory cannot be made.
    """
    path = new_directory(store, scenario.name, now=now)
    (path / "scenario.yaml").write_text(scenario.text, encoding="utf-8")
    return path


def create_run_directory_at(path: Path, scenario: Scenario) -> Path:
    """Makes a run's directory exactly at that path, with the scenario's file in it, and returns its absolute path.

    Raises:
        ConfigError: the directory exists, or cannot be made.
    """
    try:
        path.mkdir(parents=True, mode=DIRECTORY_MODE)
        (path / "events").mkdir()
        (path / "scenario.yaml").write_text(scenario.text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(key="--out", value=str(path), expected=f"a new directory: {error.strerror}") from None
    return path.absolute()


def new_directory(store: Path, name: str, *, now: datetime) -> Path:
    """Makes the directory of a run of that name, points ``latest`` to it, and returns it.

    Runs that start in the same millisecond get directories a millisecond apart.

    Raises:
        ConfigError: the directory cannot be made.
    """
    try:
        make_store(store)
        parent = store.absolute() / name
        while (path := parent / f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03d}").exists():
            now += timedelta(milliseconds=1)
        parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=DIRECTORY_MODE)
        (path / "events").mkdir()
        make_latest(path)
    except OSError as error:
        raise ConfigError(key="--out", value=str(store), expected=f"a store that can be written: {error}") from None
    return path


def make_latest(path: Path) -> None:
    """Points ``latest`` beside a run's directory to it, atomically.

    Raises:
        OSError: the link cannot be made.
    """
    fresh = path.parent / f".{path.name}.{LATEST}"
    fresh.symlink_to(path.name, target_is_directory=True)
    fresh.replace(path.parent / LATEST)


def write_cluster_file(
    path: Path,
    layout: ClusterLayout,
    *,
    era: str,
    changed: Sequence[str] = (),
    scenario: str,
    seed: int,
    driver: DriverName = DriverName.PROCESS,
    started: datetime,
    duration_s: float | None = None,
    metrics: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Writes ``cluster.yaml``: what ran when, under which rules.

    Args:
        path: of the file.
        layout: of the cluster.
        era: name of the era.
        changed: the run's changes of the era's rules and the scenario's properties, as ``name=value``.
        scenario: name of the scenario.
        seed: of all random choices.
        driver: the driver of the run.
        started: when it began, by the calendar, in UTC.
        duration_s: duration by the machine's clock; ``None`` while the run goes on.
        metrics: address of each node's metrics, if any.
    """
    document = {
        "run": layout.run,
        "scenario": scenario,
        "era": era,
        "changed": list(changed),
        "seed": seed,
        "driver": driver.value,
        "started": started.isoformat(timespec="milliseconds"),
        "switches": rule_texts(layout.switches),
        "properties": dict(layout.properties),
        "controllers": [int(controller) for controller in layout.controller_ids],
        "brokers": [int(broker) for broker in layout.broker_ids],
        "proxied": layout.toxiproxy is not None,
    }
    if layout.standby_ids:
        document["standby_controllers"] = [int(controller) for controller in layout.standby_ids]
    if layout.combined:
        document["combined"] = True
    if duration_s is not None:
        document["duration_s"] = round(duration_s, 3)
    if metrics:
        document["metrics"] = {node_id: layout.metrics_url(address) for node_id, address in metrics.items()}
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class ClusterRules:
    """The rules under which a run was played, from its ``cluster.yaml``."""

    era: str
    switches: Switches
    properties: tuple[tuple[str, str], ...]


def read_cluster_file(path: Path) -> ClusterRules:
    """Inverse of ``write_cluster_file``, as far as the rules go.

    Raises:
        ConfigError: the file is not a ``cluster.yaml``, or names rules that do not exist.
    """
    try:
        document = load_yaml(read_text(path))
        era, rules, properties = document["era"], document["switches"], document.get("properties", {})
        switches = era_rules(str(era))
        for name, rule in rules.items():
            switches = with_rule(switches, name, {True: "on", False: "off"}.get(rule, str(rule)))
        listed = tuple((key, str(value)) for key, value in properties.items())
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        why = f"line {line} is no YAML: {error.problem}"
        raise ConfigError(key="cluster.yaml", value=str(path), expected=f"a run's ({why})") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        why = shown(" ".join(str(error).split()))
        raise ConfigError(key="cluster.yaml", value=str(path), expected=f"a run's ({why})") from None
    return ClusterRules(era=str(era), switches=switches, properties=listed)

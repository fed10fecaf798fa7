"""The run directory of clients that no harness started: there is no plan, and no evidence but theirs."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from laststand.chaos.play.run_directory import DIRECTORY_MODE
from laststand.chaos.process.harness_log import HarnessLog
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.events import ClusterSettled
from laststand.emulator.core.types import BrokerId, MetadataOffset, Witness
from laststand.emulator.plan.drivers import DriverName

_NAME: Final = "clients"


class ClientRun:
    """A run directory that is written, and completed by ``close``.

    Args:
        directory: the new directory.
        era: era whose rules judge it.
        broker_ids: of the cluster.
        description: of its source.

    Raises:
        ConfigError: the directory exists, or cannot be made.
    """

    def __init__(self, directory: Path, *, era: str, broker_ids: Sequence[BrokerId], description: str) -> None:
        try:
            directory.mkdir(parents=True, mode=DIRECTORY_MODE)
            (directory / "events").mkdir()
            (directory / "history").mkdir()
        except OSError as error:
            raise ConfigError(
                key="--out", value=str(directory), expected=f"a new directory: {error.strerror}"
            ) from None
        cluster = {
            "run": directory.name,
            "scenario": _NAME,
            "era": era,
            "driver": DriverName.EXTERNAL.value,
            "controllers": [],
            "brokers": list(map(int, broker_ids)),
        }
        for name, document in (("cluster", cluster), ("scenario", {"name": _NAME, "description": description})):
            text = yaml.safe_dump(document, sort_keys=False)
            (directory / f"{name}.yaml").write_text(text, encoding="utf-8")
        self._log = HarnessLog(
            directory / "events",
            run=directory.name,
            wall_time_ns=time.time_ns(),
            driver=DriverName.EXTERNAL,
            ending=None,
            witness=Witness.CLIENTS,
        )

    def note_settled(self) -> None:
        """Records that every partition has its leader and replicas, so that a read to the end is complete."""
        self._log.note(ClusterSettled(cause_id=self._log.cause_id, metadata_offset=MetadataOffset(0)))

    def close(self, *, problem: str | None) -> None:
        """Completes the directory; ``problem`` says which evidence is missing from it."""
        self._log.close(problem=problem)

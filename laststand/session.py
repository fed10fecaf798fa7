"""This process's only Spark session."""

import atexit
import shutil
import tempfile
from pathlib import Path

from laststand.emulator.verification.spark.gateway import Jars
from laststand.emulator.verification.spark.session import SparkSessionStarter

_starter: SparkSessionStarter | None = None


def starter(*, master: str = "local[2]", heap_mb: int = 2048, log_path: Path | None = None) -> SparkSessionStarter:
    """Returns the session's owner; the first call starts it in the background. Main thread only.

    Raises:
        MissingToolError: no pyspark, or no Java.
    """
    global _starter
    if _starter is None:
        path = log_path or Path(tempfile.mkdtemp(prefix="laststand-")) / "spark.log"
        fresh = SparkSessionStarter(log_path=path, master=master, heap_mb=heap_mb, jars=Jars.ALL)
        if log_path is None:
            atexit.register(_drop_log, fresh, path.parent)
        fresh.start()
        _starter = fresh
    return _starter


def _drop_log(owner: SparkSessionStarter, directory: Path) -> None:
    """Removes a log whose place the user did not choose, unless an error message names it."""
    if owner.is_up or not any(directory.iterdir()):
        owner.stop()
        shutil.rmtree(directory, ignore_errors=True)

"""Writes the archive of Spark's classes at set-up (``python -m`` this module), before anybody waits for a verdict.

An existing archive is kept. If none can be written, no error is reported, because the archive is optional.
"""

import sys
import tempfile
from pathlib import Path

from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.verification.spark.class_archive import ArchiveUse, find_class_archive
from laststand.emulator.verification.spark.java import find_java
from laststand.emulator.verification.spark.session import SparkSessionStarter
from laststand.emulator.verification.verify import rehearse


def build_class_archive() -> bool:
    """Starts a JVM that does what a verification does and writes the archive as it ends, which takes some 15 s.

    Returns:
        Whether there is an archive now.

    Raises:
        MissingToolError: no Java, or no pyspark.
        SparkSessionError: the JVM did not come up.
    """
    archive = find_class_archive(find_java())
    if archive is None or archive.is_there:
        return archive is not None
    with tempfile.TemporaryDirectory(prefix="laststand-") as directory:
        log_path = Path(directory, "spark.log")
        starter = SparkSessionStarter(log_path=log_path, rehearsal=rehearse, archive_use=ArchiveUse.WRITE)
        try:
            starter.session()
        finally:
            starter.stop()
    return archive.is_there


def main() -> int:
    """Returns the exit code, which is always 0: a missing Java or pyspark is reported by the verification itself."""
    try:
        build_class_archive()
    except EmulatorError as error:
        sys.stderr.write(f"no archive of Spark's classes: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The process that Spark forks its Python workers from, with the checks imported: a worker is ready at once.

Spark runs this module instead of ``pyspark.daemon`` (``spark.python.daemon.module``), with an archive of PySpark's
sources before everything else on the path. They would be compiled each time, for half a second: the package that the
archive belongs to has the same, compiled.
"""

import gc
import os
import sys

sys.path[:] = [entry for entry in sys.path if not entry.startswith(os.path.join(os.environ["SPARK_HOME"], "python"))]

from pyspark.daemon import manager  # noqa: E402 - the path comes first

import laststand.emulator.verification.judge  # noqa: E402, F401 - loaded before any worker is forked

if __name__ == "__main__":
    gc.freeze()
    manager()

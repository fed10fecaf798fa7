"""The process that Spark forks its Python workers from, with the checks imported: a worker is ready at once.

Spark runs this module instead of ``pyspark.daemon`` (``spark.python.daemon.module``).
"""

import gc

from pyspark.daemon import manager

import laststand.emulator.verification.judge  # noqa: F401 - loaded before any worker is forked

if __name__ == "__main__":
    gc.freeze()
    manager()

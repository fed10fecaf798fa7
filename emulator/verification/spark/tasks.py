"""The part of Spark that verification needs: a context that runs tasks, without a session for SQL."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark import SparkContext


class SparkTasks(Protocol):
    """The runner of tasks: a ``SparkSession``, or a context without one."""

    @property
    def sparkContext(self) -> "SparkContext":
        """The context."""


class WithoutSql:
    """A context without a session."""

    def __init__(self, context: "SparkContext") -> None:
        self.sparkContext = context

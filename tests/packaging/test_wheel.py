"""The wheel, built from what a clean clone would hold and installed where no checkout is in sight, plays the demo.

The new environment has the wheel and nothing else of its own. The pinned packages are those of this environment: a path
file names their directory, in which path files count for nothing, so that this checkout's editable install is not seen.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
LINKED = ("emulator", "chaos")
GENERATED = "laststand/emulator/rpc/generated"
PROTOS = sorted(path.name for path in (ROOT / "proto").glob("*.proto"))


def output_of(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def wheel_of(source: Path, directory: Path) -> Path:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet")
    output_of(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", directory, source, cwd=directory.parent)
    (wheel,) = directory.glob("*.whl")
    return wheel


def names_in(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def sources() -> tuple[str, ...]:
    """Paths of all files that are in the repository, or would be if they were added."""
    git = ("git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    listed = output_of(*git, cwd=ROOT).split("\0")
    return tuple(sorted({name for name in listed if name and (ROOT / name).exists()}))


@pytest.fixture(scope="module")
def clone(sources: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("clone")
    for name in sources:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, directory / name, follow_symlinks=False)
    assert [path for path in (directory / GENERATED).iterdir() if "_pb2" in path.name] == []
    return directory


@pytest.fixture(scope="module")
def sdist(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sdist")
    build = f"from setuptools.build_meta import build_sdist; build_sdist({str(directory)!r})"
    output_of(sys.executable, "-c", build, cwd=clone)
    (archive,) = directory.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_of(clone, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of programs of an environment with the wheel."""
    environment = tmp_path_factory.mktemp("environment")
    output_of(sys.executable, "-m", "venv", "--without-pip", environment, cwd=environment)
    python = environment / "bin/python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet")
    output_of(*pip, "--no-deps", "--no-index", wheel, cwd=environment)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site_packages = Path(output_of(python, "-c", code, cwd=environment).strip())
    (site_packages / "pinned.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def test_each_file_of_a_package_is_in_the_wheel(sources: tuple[str, ...], wheel: Path) -> None:
    names = names_in(wheel)
    (top_level,) = (name for name in names if name.endswith(".dist-info/top_level.txt"))
    assert zipfile.ZipFile(wheel).read(top_level).decode().split() == ["laststand"]
    folders = (*LINKED, "laststand")
    files = {name for name in sources if name.split("/")[0] in folders and not name.endswith(".md")}
    expected = {f"laststand/{name}" if name.startswith(LINKED) else name for name in files}
    expected -= {f"laststand/{name}" for name in LINKED}
    assert {"laststand/emulator/module_command.py", "laststand/cli/main.py", "laststand/py.typed"} <= expected
    assert len([name for name in expected if name.endswith(".yaml")]) > 20
    assert expected - names == set()


def test_generated_modules_are_in_the_wheel_with_stubs_and_sources(wheel: Path) -> None:
    stems = [name.removesuffix(".proto") for name in PROTOS]
    expected = {f"{GENERATED}/{stem}{end}" for stem in stems for end in (".proto", "_pb2.py", "_pb2.pyi")}
    assert expected
    assert expected - names_in(wheel) == set()


def test_an_sdist_builds_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", *(f"proto/{name}" for name in PROTOS)} <= inside
    (tmp_path / "wheel").mkdir()
    assert names_in(wheel_of(sdist, tmp_path / "wheel")) == names_in(wheel)


def test_generated_modules_run_with_the_oldest_protobuf_that_is_allowed(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (dist_info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
    needed = PathDistribution(zipfile.Path(archive, f"{dist_info}/")).requires or []
    (protobuf,) = (each for each in map(Requirement, needed) if each.name == "protobuf")
    (oldest,) = (each.version for each in protobuf.specifier if each.operator == ">=")
    for name in PROTOS:
        module = archive.read(f"{GENERATED}/{name.removesuffix('.proto')}_pb2.py").decode()
        (made_for,) = re.findall(r"^# Protobuf Python Version: (.+)$", module, flags=re.MULTILINE)
        assert Version(made_for) <= Version(oldest)


@pytest.mark.spark
def test_the_installed_program_plays_the_demo(programs: Path, tmp_path: Path) -> None:
    imported = output_of(programs / "python", "-c", "import laststand.emulator as e; print(e.__file__)", cwd=tmp_path)
    assert Path(imported).is_relative_to(programs.parent)
    demo = ("run", "kip-966/last-replica-standing", "--era", "kafka-3.9", "--era", "kip-966")
    lost, kept = output_of(programs / "laststand", *demo, cwd=tmp_path).splitlines()[-2:]
    assert re.fullmatch(r"kafka-3\.9  violation, guarantee broken, \d+ acks=all records lost, as expected", lost)
    assert kept == "kip-966    valid, 0 acks=all records lost, as expected"
    pages = {page.resolve() for page in tmp_path.rglob("report.html")}
    assert len(pages) == 2
    assert all("Where they part" in page.read_text() for page in pages)


@pytest.mark.spark
def test_the_example_project_for_ci_passes_as_it_stands(programs: Path, tmp_path: Path) -> None:
    project = shutil.copytree(ROOT / "docs/examples/ci", tmp_path / "ci")
    for name in (*LINKED, "proto", "docs"):  # the project's own, of which ours must import none
        (project / name).mkdir()
        (project / name / "__init__.py").write_text("raise ImportError('the package of the project')")
    quiet = ("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestDeprecationWarning")
    said = output_of(programs / "python", "-m", "pytest", *quiet, "--junitxml", "junit.xml", cwd=project)
    assert " 4 passed" in said
    assert (project / "junit.xml").is_file()
    run = next(project.rglob("history.packed")).parent
    assert "VALID" in output_of(programs / "laststand", "verify", "--judge", "here", run, cwd=project)

"""Contents of the images, and programs that they must not contain."""

import subprocess
from typing import Final

import docker
import pytest

pytestmark = pytest.mark.docker

MODULES: Final = ("pytest", "mypy", "ruff", "hypothesis", "grpc_tools", "setuptools", "pyspark")
PROGRAMS: Final = ("gcc", "cc", "g++", "make", "go", "java", "git")


def test_a_node_is_not_root_and_says_whether_it_is_healthy(images: None) -> None:
    client = docker.from_env()
    try:
        configs = {name: client.images.get(name).attrs["Config"] for name in ("laststand", "laststand-toxiproxy")}
    finally:
        client.close()
    assert {each["User"] for each in configs.values()} == {"10001"}
    assert configs["laststand"]["Healthcheck"]["Test"] == [
        "CMD",
        "python",
        "-m",
        "laststand.emulator.node.health_check",
    ]
    assert configs["laststand"]["Labels"]["org.opencontainers.image.title"] == "Laststand"


def test_no_compiler_and_no_test_tool_runs_in_a_node(images: None) -> None:
    script = f"for each in {' '.join(PROGRAMS)}; do command -v $each; done; for each in {' '.join(MODULES)}; do "
    script += (
        'python -c "import importlib.util as u, sys; print(sys.argv[1]) if u.find_spec(sys.argv[1]) else 0" $each; '
    )
    script += "done; id -u; laststand --version"
    arguments = ("docker", "run", "--rm", "--read-only", "--network", "none", "laststand", "sh", "-c", script)
    found = subprocess.run(arguments, capture_output=True, text=True, check=True)
    user, version = found.stdout.splitlines()
    assert user == "10001"
    assert version.startswith("laststand, version")

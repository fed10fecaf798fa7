"""What goes wrong with an engine: one line, exit code 254 or verdict ``unknown``, and nothing that cannot be found."""

import json
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.docker.commands import Commands
from tests.docker.engine_relay import EngineRelay

pytestmark = pytest.mark.docker

DEADLINE_S = 60.0
DEMO = ("run", "kip-966/last-replica-standing", "--era", "kip-966", "--driver", "docker", "--no-verify")


@pytest.mark.parametrize("arguments", [DEMO, ("up", "--driver", "docker")], ids=["run", "up"])
def test_no_engine(arguments: tuple[str, ...], commands: Commands) -> None:
    commands.variables["DOCKER_HOST"] = f"unix://{commands.directory}/nobody.sock"
    assert "nothing listens at its socket" in commands.type(*arguments, code=254)
    assert not (commands.directory / "store").exists()


def test_an_image_that_is_missing(commands: Commands) -> None:
    commands.variables["LASTSTAND_IMAGE"] = "laststand:of-nobody"
    told = commands.type(*DEMO, code=254)
    assert "image laststand:of-nobody" in told
    assert "make docker-images" in told


@pytest.fixture
def dying_image(images: None) -> Iterator[str]:
    """An image whose containers end at once."""
    name = "laststand:dies"
    subprocess.run(
        ["docker", "build", "--quiet", "--tag", name, "-"],
        input=b'FROM laststand\nENTRYPOINT ["sh", "-c", "echo no disk is good enough >&2; exit 3"]\n',
        check=True,
        capture_output=True,
    )
    yield name
    subprocess.run(["docker", "image", "rm", "--force", name], check=True, capture_output=True)


def test_a_container_that_ends_at_its_start(commands: Commands, dying_image: str) -> None:
    commands.variables["LASTSTAND_IMAGE"] = dying_image
    told = commands.type(*DEMO, code=2)
    assert "did not reach its end" in told
    assert commands.containers() + commands.networks() == []
    assert "no disk is good enough" in next(commands.directory.rglob("run.log")).read_text(encoding="utf-8")


@pytest.mark.timeout(180)
def test_an_engine_that_goes_away_in_mid_run(commands: Commands) -> None:
    relay = EngineRelay(commands.directory)
    commands.variables["DOCKER_HOST"] = relay.host
    with commands.start(*DEMO) as running:
        try:
            deadline = time.monotonic() + DEADLINE_S
            while not any(path.stat().st_size for path in (commands.directory / "store").rglob("history.packed")):
                assert running.poll() is None
                assert time.monotonic() < deadline
            relay.cut()
            stdout, stderr = running.communicate(timeout=DEADLINE_S)
        finally:
            running.kill()
    assert running.returncode == 2, stdout + stderr
    assert "Traceback" not in stderr
    assert "the Docker engine went away" in stdout + stderr
    del commands.variables["DOCKER_HOST"]
    left = json.loads(commands.type("docker", "ps", "--json"))
    abandoned = {each["name"] for each in left if each["is_abandoned"]}
    assert {*commands.containers(), *commands.networks()} <= abandoned
    commands.type("docker", "prune")
    assert commands.containers() + commands.networks() == []

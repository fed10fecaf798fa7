"""Requirements in pyproject.toml are those pinned in requirements/: ``name==version`` with hashes, each name once."""

import importlib.metadata
import itertools
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PINNED = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")
SITE = ROOT / "requirements" / "site.txt"
"""Of an environment of its own."""

FILES = sorted(set((ROOT / "requirements").glob("*.txt")) - {SITE})
MAKEFILE = (ROOT / "Makefile").read_text()
NEEDED = [
    ROOT / f"requirements/{name}.txt" for name in re.findall(r"patsubst .*,([a-z ]+) \$\(if", MAKEFILE)[0].split()
]
"""Requirements that `make setup` installs on a machine that has a Go."""


def pins(files: Iterable[Path] = FILES) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for path in files:
        text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE)
        # One without hashes would make pip refuse all of them: it checks all or none.
        assert PINNED.sub("", text) == "", f"{path.name} has something else than pins with hashes"
        found += [(canonicalize_name(pin[1]), pin[2]) for pin in PINNED.finditer(text)]
    return found


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    texts = [*project["build-system"]["requires"], *project["project"]["dependencies"], *itertools.chain(*extras)]
    return [Requirement(text) for text in texts]


def test_each_name_is_pinned_once() -> None:
    names = [name for name, _ in pins()]
    assert len(names) > 50
    assert sorted(names) == sorted(set(names))


def test_what_makes_the_site_is_pinned_with_hashes() -> None:
    assert "mkdocs-material" in dict(pins([SITE]))


@pytest.mark.parametrize("requirement", declared(), ids=lambda requirement: requirement.name)
def test_what_is_declared_is_pinned_within_its_bounds(requirement: Requirement) -> None:
    version = dict(pins())[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version, prereleases=True)


def test_what_is_installed_is_what_is_pinned() -> None:
    # Without this, checks and tests would judge other versions than the ones that a user gets.
    differing = {name: version for name, version in pins() if importlib.metadata.version(name) != version}
    assert differing == {}


@pytest.mark.parametrize("files", [FILES, NEEDED], ids=["all", "make setup"])
def test_what_a_pinned_package_needs_is_pinned_too(files: list[Path]) -> None:
    pinned = dict(pins(files))
    missing = [
        f"{name} needs {needed.name}"
        for name in pinned
        for needed in (Requirement(text) for text in importlib.metadata.requires(name) or ())
        if needed.marker is None and canonicalize_name(needed.name) not in pinned
    ]
    assert missing == []


def test_setup_installs_what_users_need_and_nothing_else() -> None:
    pinned = dict(pins(NEEDED))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    asked += [text for extra in ("verify", "view", "docker", "kafka") for text in extras[extra]]
    assert {canonicalize_name(Requirement(text).name) for text in asked} <= set(pinned)
    assert not {"pytest", "mypy", "ruff", "playwright", "matplotlib", "ipykernel"} & set(pinned)

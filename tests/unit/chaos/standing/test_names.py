"""Clusters by name: found wherever their stores are, until their runs are gone."""

import shutil
from pathlib import Path

import pytest

from laststand.chaos.standing.link import NoClusterError, find_standing
from laststand.chaos.standing.names import all_registered, register
from laststand.chaos.standing.order import ORDER_FILE
from laststand.cli.options.run_argument import RUN


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def cluster(store: Path, *, name: str | None = "blue", run: str = "20260101T000000.000") -> Path:
    directory = store / "standing" / (name or "") / run
    directory.mkdir(parents=True)
    (directory / ORDER_FILE).write_text("{}")
    register(directory)
    return directory


def test_a_name_is_found_from_everywhere_and_by_every_command_that_takes_a_run(tmp_path: Path) -> None:
    directory = cluster(tmp_path / "elsewhere")
    assert find_standing(Path("blue")) == directory
    assert RUN.convert("blue", None, None) == directory
    assert RUN.convert("green", None, None) == Path("green")
    with pytest.raises(NoClusterError, match="did you mean 'blue'"):
        find_standing(Path("bleu"))
    assert all_registered() == (directory,)


def test_the_last_cluster_of_a_name_counts_and_one_that_is_gone_does_not(tmp_path: Path) -> None:
    cluster(tmp_path / "elsewhere")
    later = cluster(tmp_path / "other", run="20260102T000000.000")
    assert find_standing(Path("blue")) == later
    shutil.rmtree(tmp_path / "other")
    with pytest.raises(NoClusterError):
        find_standing(Path("blue"))
    assert all_registered() == ()
    assert list((tmp_path / "state/laststand/clusters").iterdir()) == []


def test_a_path_is_no_name_and_a_cluster_without_one_is_not_known_by_it(tmp_path: Path) -> None:
    cluster(tmp_path / "elsewhere", name=None)
    (tmp_path / "here/blue").mkdir()
    assert RUN.convert("blue", None, None) == Path("blue")
    assert all_registered() == ()


def test_a_state_directory_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    directory = cluster(tmp_path / "elsewhere")
    with pytest.raises(NoClusterError):
        find_standing(Path("blue"))
    assert find_standing(directory) == directory

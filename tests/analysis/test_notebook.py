"""The notebook runs from the first cell to the last, over a hand-written run and one more, and writes its plots."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.verification.run_builder import last_replica_standing

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "runs.ipynb"


@pytest.mark.timeout(300)
def test_the_notebook_makes_three_plots(failover_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "1").symlink_to(failover_run)
    last_replica_standing(store / "2", era="kafka-3.9").finish()
    monkeypatch.setenv("LASTSTAND_RUNS", f"{store}/*")
    monkeypatch.setenv("LASTSTAND_PLOTS", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(NOTEBOOK.parents[2])}}).execute()
    assert notebook.cells[1].outputs[0].text == "2 runs\n"
    for name in ("isr-sizes", "records-at-risk", "failovers"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_notebook_is_kept_without_outputs() -> None:
    assert [cell.outputs for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"] == [
        []
    ] * 4

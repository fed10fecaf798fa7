"""The notebook runs from the first cell to the last, over a hand-written run and one more, and writes its plots."""

import json
from pathlib import Path
from typing import cast

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.verification.run_builder import last_replica_standing

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "runs.ipynb"


DRAWN = """
import json

print(json.dumps([
    [
        {line.get_label(): len(line.get_xdata()) for line in axes.lines}
        | {points.get_label(): len(points.get_offsets()) for points in axes.collections}
        for axes in plt.figure(number).axes
    ]
    for number in plt.get_fignums()
]))
"""
"""Tells of each axes of each figure how many points its lines have."""


def drawn(notebook: nbformat.NotebookNode) -> list[list[dict[str, int]]]:
    return cast(list[list[dict[str, int]]], json.loads(notebook.cells[-1].outputs[0].text))


@pytest.mark.timeout(300)
def test_the_notebook_makes_three_plots(failover_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, folder = tmp_path / "store/kip-966/last-replica-standing", tmp_path / "docs/notebooks"
    store.mkdir(parents=True)
    folder.mkdir(parents=True)
    (store / "20261126T081824.794").symlink_to(failover_run)
    last_replica_standing(store / "20261126T081824.795", era="kafka-3.9").finish()
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(DRAWN))
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    assert notebook.cells[1].outputs[0].text == "2 runs\n"
    sizes, at_risk, failovers = drawn(notebook)
    assert [sorted(panel) for panel in sizes] == [["ELR", "ISR", "min ISR"]] * 2
    assert [sorted(panel) for panel in at_risk] == [["acknowledged", "gone", "one copy"]] * 2
    assert all(points > 0 for panel in (*sizes, *at_risk) for points in panel.values())
    assert all(any(points > 1 for panel in figure for points in panel.values()) for figure in (sizes, at_risk))
    assert [sorted(panel) for panel in failovers] == [["to_first_ack_all_s", "to_first_ack_s", "to_new_leader_s"]]
    assert any(points > 0 for points in failovers[0].values())
    for name in ("isr-sizes", "records-at-risk", "failovers"):
        assert (tmp_path / f"build/plots/{name}.png").read_bytes().startswith(b"\x89PNG")


def test_without_runs_the_notebook_says_what_makes_them(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with pytest.raises(CellExecutionError, match="no runs: `make demo` makes two"):
        NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(tmp_path)}}).execute()


def test_the_notebook_is_kept_without_outputs() -> None:
    assert [cell.outputs for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"] == [
        []
    ] * 4

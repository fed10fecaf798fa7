"""All vectors pass, and the harness notices when one does not."""

import json
from pathlib import Path

import pytest

from tests.conformance.harness import (
    OWN_VECTORS,
    VECTORS,
    NotBuilt,
    Vector,
    VectorFileError,
    load_not_built,
    load_vectors,
    mismatches,
    run_vectors,
)
from tests.conformance.kinds import KINDS
from tests.conformance.run import main


def test_every_vector_of_a_built_kind_passes() -> None:
    report = run_vectors(load_vectors(VECTORS), KINDS, load_not_built())
    assert [failure.describe() for failure in report.failures] == []
    assert report.passed > 250
    assert [reason for reason in report.skipped if not reason.startswith("not built yet")] == []


def test_every_own_vector_passes() -> None:
    report = run_vectors(load_vectors(OWN_VECTORS), KINDS, load_not_built())
    assert [failure.describe() for failure in report.failures] == []
    assert report.skipped == {}
    assert report.passed > 400


def test_the_list_of_what_is_not_built_names_nothing_that_is() -> None:
    not_built = load_not_built()
    assert not_built.kinds.keys() & KINDS.keys() == set()
    assert not_built.vectors.keys() <= {vector.id for vector in load_vectors(VECTORS)}


def _write(directory: Path, vectors: object) -> Path:
    (directory / "facts.json").write_text(json.dumps({"schema": {}, "vectors": vectors}))
    return directory


SHRINK = {
    "id": "shrink",
    "provenance": "test",
    "config": {"mode": "kraft", "min_isr": 2, "elr_enabled": True},
    "before": {"replicas": [1, 2, 3], "isr": [1, 2, 3], "leader": 1, "leader_epoch": 4, "partition_epoch": 6},
    "brokers": {},
    "event": {"type": "partition_change", "target_isr": [1], "acceptable_leaders": [1, 2, 3]},
}


def test_a_wrong_expectation_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = {**SHRINK, "expect": {"isr": [1], "elr": [3, 2], "partition_epoch": 7, "leader_epoch": 4}}
    wrong = {**SHRINK, "id": "wrong", "expect": {"elr": [2]}}
    unseen = {**SHRINK, "id": "unseen", "expect": {"no_such_key": 1}}
    unknown = {**SHRINK, "id": "unknown", "event": {"type": "no_such_kind"}, "expect": {}}
    assert main([str(_write(tmp_path, [right, wrong, unseen, unknown]))]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "FAIL wrong (partition_change): elr: expected [2], actual [2, 3]",
        "FAIL unseen (partition_change): no_such_key: expected 1, but the adapter does not observe it",
        "skipped 1: unknown kind no_such_kind",
        "1 passed, 2 failed, 1 skipped",
    ]


def test_a_vector_that_breaks_its_handler_fails_alone(tmp_path: Path) -> None:
    broken = {**SHRINK, "id": "broken", "event": {"type": "partition_change"}, "expect": {}}
    right = {**SHRINK, "expect": {"isr": [1]}}
    report = run_vectors(load_vectors(_write(tmp_path, [broken, right])), KINDS, NotBuilt())
    assert report.passed == 1
    assert "KeyError" in report.failures[0].describe()


def test_sets_are_compared_without_order_and_lists_with_it() -> None:
    assert mismatches({"isr": [1, 2]}, {"isr": [2, 1]}) != []
    assert mismatches({"elr": [1, 2]}, {"elr": [2, 1]}, sets={"elr"}) == []
    assert mismatches({"sends": ["x"]}, {}, informative={"sends"}) == []


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ('{"vectors": [\n  {"id": }]}', "facts.json:2:10"),
        ("[]", "expected an object with a list 'vectors'"),
        ('{"vectors": [1]}', r"vectors\[0\]: expected an object with a string 'id'"),
        ('{"vectors": [{"id": "a"}]}', r"vectors\[0\] \(a\): expected a string in 'event.type' or 'kind'"),
    ],
)
def test_a_broken_file_is_named_with_the_place(tmp_path: Path, content: str, where: str) -> None:
    (tmp_path / "facts.json").write_text(content)
    with pytest.raises(VectorFileError, match=where):
        load_vectors(tmp_path)
    assert main([str(tmp_path)]) == 254


def test_a_vector_that_states_no_fact_fails_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "facts.json").write_text('{"vectors": [{"id": "a", "kind": "crc"}]}')
    assert main([str(tmp_path)]) == 1
    assert "FAIL a (crc): it has no object 'expect'" in capsys.readouterr().out


def test_an_empty_or_missing_directory_is_an_error(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 254
    assert main([str(tmp_path / "missing")]) == 254


def test_the_era_follows_the_provenance() -> None:
    def era(**fields: object) -> object:
        return Vector(id="x", kind="x", file="x", raw=fields).switches.last_known.value

    assert era() == "leader"
    assert era(provenance="kip") == "kip"
    assert era(authority="kip") == "kip"

"""``laststand autopsy``: what it prints, writes and refuses."""

import json
import re
from pathlib import Path

import jsonschema
import msgspec
import pytest

from laststand.cli.main import cli
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.user_error import UserError
from laststand.emulator.autopsy.autopsy_schema import AUTOPSY_SCHEMA_FILE
from laststand.emulator.autopsy.findings import AutopsyReport
from tests.kafka_logs.archives import unpack


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("4.2.0", tmp_path_factory.mktemp("kafka"))


def autopsy(*words: str | Path) -> object:
    return cli.main(["autopsy", *map(str, words)], standalone_mode=False)


def test_partitions_that_differ_are_shown(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert autopsy(cluster) is ExitCode.VALID
    printed = capsys.readouterr().out
    assert printed.startswith("5 partitions in 4 log directories: the replicas of 3 differ\n")
    assert "orders-0: no leader, leader epoch 3; assigned to 1 2 3; ISR empty; ELR 3" in printed
    assert "electing 3 loses 75 records that broker 1 has, 50 committed: offsets 100" in printed
    assert "electing 3 loses 4 records and 1 transaction marker that brokers 1 and 2 have, all committed" in printed
    assert not re.search("^(idle|table)-0:", printed, re.MULTILINE)
    assert autopsy(cluster, "--all") is ExitCode.VALID
    assert "\nidle-0: " in capsys.readouterr().out


def test_json_is_what_the_schema_says(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    autopsy(cluster, "--partition", "orders-0", "--json")
    printed = capsys.readouterr().out
    schema = json.loads(AUTOPSY_SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(printed))
    [partition] = msgspec.json.decode(printed, type=AutopsyReport).partitions
    assert (partition.topic, partition.longest) == ("orders", 3)


def test_a_page_has_figures_and_asks_the_network_for_nothing(cluster: Path, tmp_path: Path) -> None:
    autopsy(cluster, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<figure") == 3
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href)=\"(?!#)", page)


def test_names_of_topics_are_escaped_in_pages(cluster: Path, tmp_path: Path) -> None:
    # Kafka allows no such name; a folder may have any.
    page = tmp_path / "page.html"
    odd = tmp_path / "<b>1"
    odd.symlink_to(cluster / "node-1")
    autopsy(odd, cluster / "node-2", "--html", page)
    assert "&lt;b&gt;1" in page.read_text()
    assert "<b>1" not in page.read_text()


def test_what_cannot_be_read_makes_the_end_uncertain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = unpack("3.9.1", tmp_path)
    for segment in (cluster / "node-2" / "orders-0").glob("*.log"):
        segment.unlink()
    assert autopsy(cluster) is ExitCode.UNKNOWN
    assert f"problems:\n  {cluster}/node-2/orders-0: holds no segment\n" in capsys.readouterr().out


def test_a_partition_that_is_not_there_is_refused(cluster: Path) -> None:
    with pytest.raises(UserError, match=r"no partition orders-7; the directories have: .*orders-0"):
        autopsy(cluster, "--partition", "orders-7")
    with pytest.raises(UserError, match="no log of any partition"):
        autopsy(cluster / "node-100")

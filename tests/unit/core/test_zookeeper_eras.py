"""``docs/eras-zookeeper.md`` has a source of each rule, and each rule is read."""

import re
from pathlib import Path

import pytest

from docs.rule_tables import readers
from laststand.emulator.core.eras import (
    ALL_ERAS,
    ZooKeeperSwitches,
    era_kind,
    era_rules,
    is_zookeeper_era,
    rule_texts,
    strange_protocol,
    unanswered_protocol,
    with_rule,
)
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.switches import ERAS_WITH_ZOOKEEPER
from laststand.emulator.core.types import BrokerId, ClusterKind, NodeId, NodeRole
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY, VERSIONS, ibp_level
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS, IsrWriteUnknown, ZooKeeperRules

ROOT = Path(__file__).parents[3]
RULES = ZooKeeperRules.__struct_fields__


def tables() -> list[list[list[str]]]:
    """Returns the document's tables, each a list of rows of cells without backquotes."""
    found: list[list[list[str]]] = []
    is_inside = False
    for line in (ROOT / "docs" / "eras-zookeeper.md").read_text().splitlines():
        if not line.startswith("|"):
            is_inside = False
            continue
        if not is_inside:
            found.append([])
            is_inside = True
        found[-1].append([cell.strip().replace("`", "") for cell in line.strip("|").split("|")])
    return found


def test_every_rule_has_a_source() -> None:
    _, _, *rows = tables()[2]
    assert {row[0] for row in rows} == set(RULES)
    assert all(re.search(r"KIP-\d+|KAFKA-\d+", row[1]) for row in rows)


def test_every_rule_is_read_somewhere() -> None:
    assert [name for name, paths in readers("rules", RULES).items() if not paths] == []


def test_these_eras_are_the_ones_that_drivers_refuse() -> None:
    assert frozenset(ZOOKEEPER_ERAS) == ERAS_WITH_ZOOKEEPER


def test_a_leader_that_may_try_again_writes_itself() -> None:
    for name, era in ZOOKEEPER_ERAS.items():
        writes_itself = era.ibp < ibp_level("2.7-IV2")
        assert (era.rules.isr_write_unknown is IsrWriteUnknown.KEEP) == writes_itself, name


def test_single_brokers_have_protocols_of_their_own() -> None:
    switches = with_rule(era_rules("kafka-3.9-zk"), PROPERTY, "3.9,2:2.6,0:2.7-IV0")
    assert rule_texts(switches)[PROPERTY] == "3.9-IV0,0:2.7-IV0,2:2.6-IV0"
    assert isinstance(switches, ZooKeeperSwitches)
    levels = [switches.protocol_of(BrokerId(NodeId(number))).level for number in range(3)]
    assert [VERSIONS[level] for level in levels] == ["2.7-IV0", "3.9-IV0", "2.6-IV0"]
    assert strange_protocol(switches, brokers=3) is None
    assert strange_protocol(switches, brokers=2) == "3.9-IV0,0:2.7-IV0,2:2.6-IV0"


def test_a_version_with_which_leaders_ask_is_too_new_for_releases_that_do_not_answer() -> None:
    old = era_rules("kafka-2.6-zk")
    assert unanswered_protocol(old, started_with=("2.5", "2.7-IV1")) is None
    assert unanswered_protocol(old, started_with=("2.6", "2.7")) == "2.7-IV2"
    assert unanswered_protocol(with_rule(old, PROPERTY, "2.6,1:3.2")) == "3.2-IV0"
    assert unanswered_protocol(with_rule(old, PROPERTY, "2.8")) == "2.8-IV1"
    assert unanswered_protocol(era_rules("kafka-3.1-zk"), started_with=("2.7", "3.9")) is None
    assert unanswered_protocol(era_rules("kip-966"), started_with=("2.7",)) is None


@pytest.mark.parametrize("text", ["3.9,2.6", "3.9,x:2.6", "3.9,1:2.6,1:2.7", "3.9,1:1.0", "1:2.6", "3.9,"])
def test_protocols_of_single_brokers_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ConfigError, match=PROPERTY):
        with_rule(era_rules("kafka-3.9-zk"), PROPERTY, text)


def test_a_release_means_its_last_version() -> None:
    assert VERSIONS[ibp_level("2.7")] == "2.7-IV2"
    assert VERSIONS[ibp_level("2.7-IV0")] == "2.7-IV0"
    with pytest.raises(ConfigError, match=PROPERTY):
        ibp_level("4.0")


@pytest.mark.parametrize("era", ALL_ERAS)
def test_an_era_its_rules_and_their_plain_switches_are_of_one_kind_of_cluster(era: str) -> None:
    rules = era_rules(era)
    assert rules.kind is era_kind(era)
    assert (era_kind(era) is ClusterKind.ZOOKEEPER) is is_zookeeper_era(era) is isinstance(rules, ZooKeeperSwitches)


def test_each_kind_of_cluster_keeps_its_metadata_at_one_node_that_is_no_broker() -> None:
    roles = {kind: kind.metadata_role for kind in ClusterKind}
    assert roles == {ClusterKind.KRAFT: NodeRole.CONTROLLER, ClusterKind.ZOOKEEPER: NodeRole.ZOOKEEPER}
    assert all(role.has_metadata for role in roles.values())


def test_offsets_of_metadata_begin_at_0_and_zxids_at_1() -> None:
    assert [kind.first_metadata_offset for kind in ClusterKind] == [0, 1]

"""The commands for a standing cluster, as far as they get without one: what they refuse, and how they print."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from laststand.chaos.standing.messages import Command, Perform, StepPlayed
from laststand.chaos.standing.order import StandingOrder, write_order
from laststand.cli.commands.produce import records_of
from laststand.cli.commands.topics import TopicListing, parse_assignment, partition_line, topic_line
from laststand.cli.commands.up import parse_ports
from laststand.cli.main import cli
from laststand.cli.options.assignments import assignments
from laststand.cli.options.partitions import parse_partition
from laststand.cli.output.output import Output
from laststand.cli.output.tables import print_listing
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.failure import CommandFailedError
from laststand.cli.program.user_error import UserError
from laststand.cli.standing import connections
from laststand.cli.standing.chaos_commands import COMMANDS
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.disk import DiskModel, Keep
from laststand.emulator.core.errors import EmulatorError, ErrorCode
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    BrokerId,
    FeatureUpgradeType,
    LeaderEpoch,
    LeaderRecoveryState,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import CLIENT, CONTROLLER, ReplicaRole, RoleNode
from laststand.emulator.plan.power import DiskLoss


def brokers(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(NodeId(each)) for each in ids)


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("status nowhere", "no standing cluster in nowhere; start one with: laststand up"),
        ("down nowhere", "no standing cluster in nowhere"),
        ("down --dir nowhere", "no standing cluster in nowhere"),
        ("status here --dir there", "give the cluster once"),
        ("stop nowhere", "no standing cluster in nowhere"),
        ("start nowhere", "no standing cluster in nowhere"),
        ("up --from nowhere", "no standing cluster in nowhere"),
        ("up --from nowhere --brokers 2", "--from excludes --brokers"),
        ("up --name latest", "--name latest: expected"),
        ("up --name a/b", "--name a/b: expected"),
        ("logs 0 --json", "--json goes with --events"),
        ("consume orders --dir nowhere", "no standing cluster in nowhere"),
        ("produce orders --producer-property linger", "--producer-property linger: expected key=value"),
        ("produce orders --producer-property acks=5", "unknown key 'acks'"),
        ("topics create t --replica-assignment 0:0", "'0:0' is no list of different broker ids"),
        ("topics create t --replica-assignment 0 --partitions 2", "excludes --partitions"),
        ("topics create t --config min.insync.replicas=0", "min.insync.replicas"),
        ("topics alter t", "nothing to alter"),
        ("configs alter --entity-type topics --add-config a=b", "give --entity-name"),
        ("configs describe --entity-type topics --entity-default", "--entity-default goes with"),
        ("configs describe --entity-type brokers --entity-name x", "expected a broker id"),
        ("features upgrade --feature x=y", "--feature x=y: expected a level"),
        ("elect-leaders --election-type preferred", "give one of --topic with --partition"),
        ("elect-leaders --election-type preferred --topic t", "--topic and --partition go together"),
        ("elect-leaders --all-topic-partitions --leader 1", "--leader goes with --topic"),
        ("elect-leaders --path-to-json-file nowhere.json", "nowhere.json: No such file"),
        ("reassign --topic t --partition 0", "are no replicas of a partition"),
        ("reassign --topic t --partition 0 --replicas 1,1", "are no replicas of a partition"),
        ("reassign --topic t --partition 0 --replicas 1,a", "expected broker ids"),
        ("reassign", "give either --reassignment-json-file, or --topic"),
        ("inspect orders", "'orders' is no partition"),
        ("chaos heal 1 --from 0 --to 1", "give NODE, or --from and --to"),
        ("up --set no.such=1", "no.such"),
        ("up --era no-such", "no-such"),
    ],
)
def test_what_can_be_fixed_is_said_before_anything_starts(
    command: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store" / "standing" / "latest").mkdir(parents=True)
    (tmp_path / "store" / "standing" / "latest" / "supervisor.json").write_text("{}")
    with pytest.raises(EmulatorError) as refused:
        CliRunner().invoke(cli, command.split(), standalone_mode=False, catch_exceptions=False)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"partitions": [{"topic": "t"}]}', "missing required field `partition` - at `$.partitions[0]`"),
        ('{"partitions": [{"topic": "t", "partition": 0, "leader": 1}]}', "unknown field `leader`"),
        ("{", "Input data was truncated"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(
    content: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "election.json").write_text(content)
    with pytest.raises(UserError) as refused:
        CliRunner().invoke(
            cli,
            ["elect-leaders", "--election-type", "unclean", "--path-to-json-file", "election.json"],
            standalone_mode=False,
            catch_exceptions=False,
        )
    assert complaint in str(refused.value)


def test_every_command_has_a_place_in_the_help() -> None:
    text = CliRunner().invoke(cli, ["--help"]).stdout
    for name in cli.commands:
        assert f"\n  {name} " in text


@pytest.mark.parametrize(
    ("text", "replicas"),
    [("0", [(0,)]), ("0:1:2,1:2:0", [(0, 1, 2), (1, 2, 0)]), ("2,1", [(2,), (1,)])],
)
def test_an_assignment_lists_replicas_by_partition(text: str, replicas: list[tuple[int, ...]]) -> None:
    assert parse_assignment(text) == tuple(brokers(*each) for each in replicas)


@pytest.mark.parametrize("text", ["", "0,", "0:", "a", "0:1:0", "-1"])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        parse_assignment(text)


def test_a_partition_is_named_by_its_topic_and_number() -> None:
    assert parse_partition("my-topic.x-12") == TopicPartition("my-topic.x", 12)


def test_assignments_keep_what_stands_behind_the_first_equals_sign() -> None:
    assert assignments("--config", ("a=b=c", "d=")) == {"a": "b=c", "d": ""}


ONE, TWO = NodeId(1), NodeId(2)
LEADER = RoleNode(role=ReplicaRole.LEADER, partition=TopicPartition("orders", 0))


@pytest.mark.parametrize(
    ("command", "action"),
    [
        ("kill 1", actions.Kill(nodes=(ONE,))),
        ("kill leader(orders-0) 2", actions.Kill(nodes=(LEADER, TWO))),
        ("power-loss 1 --keep torn --seed 7", actions.PowerLoss(nodes=(ONE,), loss=DiskLoss(keep=Keep.TORN, seed=7))),
        ("power-loss 1 --disk xfs", actions.PowerLoss(nodes=(ONE,), loss=DiskLoss(keep=Keep.NONE, disk=DiskModel.XFS))),
        ("power-loss 1", actions.PowerLoss(nodes=(ONE,), loss=DiskLoss(keep=Keep.NONE))),
        ("isolate 1", actions.Isolate(nodes=(ONE,), clients=actions.Clients.CUT)),
        ("slow 1 2 --latency 40ms", actions.Slow(link=Link(ONE, TWO), latency_ms=40)),
        ("flip-bit 1 --partition orders-0", actions.FlipBit(nodes=(ONE,), partition=TopicPartition("orders", 0))),
        ("isolate 1 --clients connected", actions.Isolate(nodes=(ONE,), clients=actions.Clients.CONNECTED)),
        ("lose-responses client 1", actions.LoseResponses(link=Link(CLIENT, ONE))),
        ("partition 1 controller --one-way", actions.Cut(link=Link(ONE, CONTROLLER))),
        ("partition 1 client --one-way", actions.Cut(link=Link(ONE, CLIENT))),
        ("partition controller 1", actions.Cut(link=Link(ONE, CONTROLLER))),
        ("heal", actions.HealAll()),
        ("heal 1", actions.HealNodes(nodes=(ONE,))),
        ("heal --from 1 --to 2", actions.HealLink(link=Link(ONE, TWO))),
    ],
)
def test_a_fault_is_the_action_of_a_scenario(
    command: str, action: actions.ActionTemplate, monkeypatch: pytest.MonkeyPatch
) -> None:
    performed: list[actions.ActionTemplate] = []

    def play(_: Path, asked: Command, __: Output) -> StepPlayed:
        assert isinstance(asked, Perform)
        performed.append(asked.action)
        return StepPlayed(step="", outcome=actions.no_op("tested"), performed=None)

    monkeypatch.setattr("laststand.cli.standing.chaos_commands._play", play)
    result = CliRunner().invoke(cli, ["chaos", *command.split()], standalone_mode=False)
    assert result.return_value == ExitCode.VIOLATION, result.output
    assert performed == [action]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (
            "slow 1 2 --latency soon",
            "slow: latency: 'soon' is no duration, allowed: a number and ms, s or min, such as 30 s",
        ),
        (
            "flip-bit 1 --partition orders",
            "flip-bit: partition: 'orders' is no partition, allowed: TOPIC-NUMBER, such as orders-0",
        ),
        ("lose-next 1 2 Fetch request --count few", "lose-next: count: 'few' is no whole number"),
        ("power-loss 1 --seed x", "power-loss: 'x' is no whole number"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_option(command: str, complaint: str) -> None:
    result = CliRunner().invoke(cli, ["chaos", *command.split()], standalone_mode=False)
    assert isinstance(result.exception, UserError)
    assert str(result.exception) == complaint


def test_a_kind_of_message_that_does_not_exist_is_refused_with_one_that_does() -> None:
    result = CliRunner().invoke(cli, ["chaos", "hold", "1", "2", "Fech", "request"], standalone_mode=False)
    assert isinstance(result.exception, UserError)
    assert "did you mean 'Fetch'?" in str(result.exception)
    assert len(str(result.exception)) < 300


@pytest.mark.parametrize(
    "command", ["kill zookeeper", "isolate 1 zookeeper", "partition 1 zookeeper", "heal zookeeper"]
)
def test_a_cluster_without_zookeeper_has_no_such_node(command: str, tmp_path: Path) -> None:
    order = StandingOrder(
        era="kip-966",
        switches=Switches(),
        properties={},
        brokers=3,
        seed=1,
        directory=str(tmp_path),
        toxiproxy=None,
    )
    write_order(order)
    result = CliRunner().invoke(cli, ["chaos", *command.split(), "--dir", str(tmp_path)], standalone_mode=False)
    assert str(result.exception) == "zookeeper: there is no ZooKeeper in this era: kip-966"
    assert isinstance(result.exception, UserError)


def test_every_fault_that_processes_have_is_a_command() -> None:
    administration = {kind for kind in actions.ACTION_SPECS if issubclass(kind, actions.AdminAction)}
    offered = {
        row.line_verb or row.verb
        for kind, row in actions.ACTION_SPECS.items()
        if DriverName.PROCESS not in row.refused
        and kind not in {*administration, actions.HealNodes, actions.HealLink}
        and not issubclass(kind, actions.OfWorkload)
    }
    assert offered <= set(COMMANDS.commands)


def test_what_only_a_workload_does_is_no_command() -> None:
    assert {"produce", "transact", "consume"}.isdisjoint(COMMANDS.commands)


def described(*, leader: int | None, elr: tuple[int, ...]) -> messages.DescribedPartition:
    return messages.DescribedPartition(
        partition=3,
        error=ErrorCode.NONE,
        leader=None if leader is None else BrokerId(NodeId(leader)),
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        replicas=brokers(0, 1, 2),
        isr=brokers(1),
        elr=brokers(*elr),
        last_known_elr=(),
        last_known_leader=None,
        offline_replicas=(),
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
    )


def test_topics_are_described_as_kafka_does() -> None:
    partition = described(leader=1, elr=(0, 2))
    topic = messages.DescribedTopic(
        name="orders", error=ErrorCode.NONE, topic_id=TopicId("abc"), partitions=(partition,)
    )
    listing = TopicListing(topic=topic, configs={"min.insync.replicas": "2", "flush.ms": "5"}, min_insync_replicas=2)
    assert topic_line(listing) == (
        "Topic: orders\tTopicId: abc\tPartitionCount: 1\tReplicationFactor: 3\t"
        "Configs: flush.ms=5,min.insync.replicas=2"
    )
    assert partition_line("orders", partition) == (
        "\tTopic: orders\tPartition: 3\tLeader: 1\tReplicas: 0,1,2\tIsr: 1\tElr: 0,2\tLastKnownElr: "
    )
    assert "Leader: none" in partition_line("orders", described(leader=None, elr=()))
    recovering = msgspec.structs.replace(partition, leader_recovery_state=LeaderRecoveryState.RECOVERING)
    assert partition_line("orders", recovering).endswith("\tLastKnownElr: \tLeaderRecoveryState: RECOVERING")


def told(monkeypatch: pytest.MonkeyPatch, module: str, *arguments: str) -> tuple[list[object], str]:
    """Returns the requests of an administrator's command to the client, and its output; every answer is empty."""
    asked: list[object] = []

    class Client:
        def __getattr__(self, name: str) -> Callable[..., Awaitable[tuple[()]]]:
            async def answer(*words: object, **named: object) -> tuple[()]:
                asked.append((name, *words))
                return ()

            return answer

    monkeypatch.setattr(f"laststand.cli.commands.{module}.locate", lambda place: place)
    monkeypatch.setattr(f"laststand.cli.commands.{module}.administer", lambda _, work: asyncio.run(work(Client())))
    monkeypatch.setattr("laststand.cli.standing.connections.era_of", lambda _: "kip-966")
    if module in ("topics", "configs"):
        monkeypatch.setattr(f"laststand.cli.commands.{module}.era_of", lambda _: "kip-966")
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    return asked, result.output + (result.stderr if result.stderr not in result.output else "")


@pytest.mark.parametrize("word", ["preferred", "PREFERRED", "Longest-Log-Balanced"])
def test_an_election_type_is_taken_in_any_case(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, _ = told(monkeypatch, "elect_leaders", "elect-leaders", "--election-type", word, "--all-topic-partitions")
    assert asked == [("elect_leaders", admin_messages.RequestedElection[word.upper().replace("-", "_")], None)]


@pytest.mark.parametrize(("text", "level"), [("4.0-IV1", 23), ("23", 23), ("4.0", 25)])
def test_a_metadata_version_is_taken_by_name(text: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, said = told(monkeypatch, "features", "features", "upgrade", "--feature", f"metadata.version={text}")
    upgrade = FeatureUpgradeType.UPGRADE
    update = admin_messages.FeatureUpdate(feature="metadata.version", max_version_level=level, upgrade_type=upgrade)
    assert asked == [("update_features", [update])]
    assert f"metadata.version was upgraded to {level} (4.0-IV" in said


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "create", "orders", "--config"),
        ("topics", "alter", "orders", "--config"),
        ("configs", "alter", "--entity-type", "topics", "--entity-name", "orders", "--add-config"),
    ],
)
def test_a_deprecated_property_is_reported_where_it_is_set(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    warning = "unclean.leader.election.enable is deprecated (KIP-966), use unclean.recovery.strategy"
    assert warning in told(monkeypatch, words[0], *words, "unclean.leader.election.enable=true")[1]
    assert "deprecated" not in told(monkeypatch, words[0], *words, "min.insync.replicas=1")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--topic", "orders"), "give --topic, --partition and --offset, or --offset-json-file"),
        (("--topic", "orders", "--offset-json-file", "f"), "--offset-json-file excludes"),
        (("--topic", "orders", "--partition", "0", "--offset", "-2"), "-2 is not in the range"),
        (("--topic", "orders", "--partition", "0", "--offset", "3"), "no partition orders-0"),
    ],
)
def test_what_delete_records_cannot_do_is_reported(
    words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        output = told(monkeypatch, "delete_records", "delete-records", *words)[1]
    except UserError as error:
        output = str(error)
    assert said in output


class JustCreated:
    """A cluster that knows the topic at once and its partitions at the ``later``-th look."""

    def __init__(self, *, later: int) -> None:
        self.looks_left = later

    async def describe_topics(self) -> tuple[messages.DescribedTopic, ...]:
        self.looks_left -= 1
        partitions = () if self.looks_left > 0 else (described(leader=1, elr=()),)
        topic = messages.DescribedTopic(
            name="orders", error=ErrorCode.NONE, topic_id=TopicId("abc"), partitions=partitions
        )
        return (topic,)


def test_partitions_of_a_topic_that_was_just_created_are_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_LOOK_INTERVAL_S", 0)
    created = JustCreated(later=3)
    monkeypatch.setattr(connections, "administer", lambda _, work: asyncio.run(work(created)))
    assert connections.partitions_of(Path("anywhere"), "orders", None) == (TopicPartition("orders", 0),)
    assert created.looks_left == 0


def test_a_topic_that_gets_no_partition_in_time_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_CREATED_WITHIN_S", 0)
    monkeypatch.setattr(connections, "administer", lambda _, work: asyncio.run(work(JustCreated(later=3))))
    with pytest.raises(CommandFailedError, match="topic orders was created, and has no partition after 0 s"):
        connections.partitions_of(Path("anywhere"), "orders", None)


def test_columns_are_as_wide_as_their_cells_and_numbers_stand_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_listing(("NAME", "COUNT", "NOTE"), [("a", 7, None), ("longer", 1000, "[b]")])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["NAME    COUNT  NOTE", "a           7  -", "longer   1000  [b]"]


def test_a_listing_without_rows_is_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    print_listing(("NAME", "COUNT"), [])
    assert capsys.readouterr().out.split() == ["NAME", "COUNT"]


def test_where_there_is_no_terminal_a_wide_row_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_listing(("NAME", "NOTE"), [("a", "word " * 100), ("b", None)])
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_listing_whose_last_column_is_empty_folds_no_heading(capsys: pytest.CaptureFixture[str]) -> None:
    print_listing(("PARTITION", "ELECTABLE", ""), [("orders-0", 3, "")])
    assert capsys.readouterr().out.splitlines()[0].split() == ["PARTITION", "ELECTABLE"]


@pytest.mark.parametrize(
    ("text", "ports"),
    [("19092,19093", {0: 19092, 1: 19093}), ("19091, 19092,19093", {100: 19091, 0: 19092, 1: 19093})],
)
def test_ports_are_those_of_the_brokers_with_the_controllers_before_them(
    text: str, ports: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "laststand.emulator.cluster.ports.is_free", lambda _: True
    )  # A cluster may run on this machine.
    assert parse_ports(text, brokers=2) == ports


@pytest.mark.parametrize("text", ["", "19092", "19092,19092", "19092,x", "80,81", "1024,70000", "2000,2001,2002,2003"])
def test_what_are_no_ports_of_the_nodes_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--ports"):
        parse_ports(text, brokers=2)


def test_every_line_before_one_without_separator_is_a_record() -> None:
    assert records_of([b"a:1", b"b:2:3", b"bad", b"c:4"], b":") == [(b"a", b"1"), (b"b", b"2:3")]
    assert records_of([b"bad"], b":") == []
    assert records_of([b"a:1", b""], None) == [(None, b"a:1"), (None, b"")]

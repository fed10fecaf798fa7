"""``laststand topics``: create, delete, describe, alter and list the topics of a standing cluster."""

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from laststand.cli.options.completion import complete_topics
from laststand.cli.options.deprecated import warn_of_deprecated
from laststand.cli.output.output import Output, json_option, report_done
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import administer, directory_option, era_of, locate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laststand.emulator.client.admin import AdminClient
    from laststand.emulator.core import messages
    from laststand.emulator.core.types import BrokerId

ResultT = TypeVar("ResultT")


class TopicListing(msgspec.Struct, frozen=True, kw_only=True):
    """A topic and its configuration."""

    topic: "messages.DescribedTopic"
    configs: dict[str, str]
    min_insync_replicas: int


def topic_argument(function: "Callable[..., ResultT]") -> "Callable[..., ResultT]":
    """Adds an argument NAME, and the option ``--topic`` of kafka-topics.sh; the function gets ``name``."""

    @click.argument("argument_name", required=False, metavar="NAME", shell_complete=complete_topics)
    @click.option(
        "--topic", "option_name", metavar="NAME", shell_complete=complete_topics, help="The same as the argument."
    )
    @functools.wraps(function)
    def with_name(*, argument_name: str | None, option_name: str | None, **arguments: object) -> ResultT:
        name = argument_name or option_name
        if name is None or (argument_name is not None and option_name is not None):
            raise UserError("give one topic: as the argument, or with --topic")
        return function(name=name, **arguments)

    return with_name


@click.group(short_help="Create, delete, describe, alter, list.")
def topics() -> None:
    """Topics of a standing cluster, with the options of kafka-topics.sh."""


@topics.command()
@topic_argument
@click.option(
    "--partitions", type=click.IntRange(min=1), metavar="N", help="Number of partitions.  [default: num.partitions]"
)
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1),
    metavar="N",
    help="Replicas of each partition.  [default: default.replication.factor]",
)
@click.option(
    "--replica-assignment",
    metavar="LIST",
    help="Replicas of each partition instead of the two above: 0:1:2,1:2:0 are two partitions.",
)
@click.option(
    "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A property of the topic. May be repeated."
)
@click.option("--if-not-exists", is_flag=True, help="Succeed if the topic exists already, whatever its settings.")
@directory_option
@json_option
def create(
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    *,
    if_not_exists: bool,
    place: Path,
    output: Output,
) -> None:
    """Create a topic."""
    from laststand.cli.options.assignments import assignments
    from laststand.emulator.client.admin_error import AdminError
    from laststand.emulator.core import admin_messages
    from laststand.emulator.core.errors import ErrorCode
    from laststand.emulator.core.properties import check_topic_properties
    from laststand.emulator.core.types import TopicId
    from laststand.emulator.core.uuid_text import uuid_text

    if replica_assignment is not None and (partitions is not None or replication_factor is not None):
        raise UserError("--replica-assignment excludes --partitions and --replication-factor")
    properties = assignments("--config", configs)
    check_topic_properties(properties)
    topic = admin_messages.CreatableTopic(
        name=name,
        topic_id=TopicId(uuid_text(os.urandom(16))),
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=() if replica_assignment is None else parse_assignment(replica_assignment),
        configs=tuple(properties.items()),
    )

    async def attempt(admin: "AdminClient") -> bool:
        try:
            await admin.create_topic(topic)
        except AdminError as error:
            if if_not_exists and error.error is ErrorCode.TOPIC_ALREADY_EXISTS:
                return False
            raise
        return True

    directory = locate(place)
    warn_of_deprecated(properties, era=era_of(directory))
    is_new = administer(directory, attempt)
    done = f"Created topic {name}." if is_new else f"Topic {name} exists already."
    report_done(done, {"topic": name, "created": is_new}, output)


@topics.command()
@topic_argument
@click.option("--if-exists", is_flag=True, help="Succeed if there is no such topic.")
@directory_option
@json_option
def delete(name: str, *, if_exists: bool, place: Path, output: Output) -> None:
    """Delete a topic, with its data, also where a broker is down now."""
    from laststand.emulator.client.admin_error import AdminError
    from laststand.emulator.core.errors import ErrorCode

    async def attempt(admin: "AdminClient") -> bool:
        try:
            await admin.delete_topic(name)
        except AdminError as error:
            if if_exists and error.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return False
            raise
        return True

    was_there = administer(locate(place), attempt)
    done = f"Deleted topic {name}." if was_there else f"There is no topic {name}."
    report_done(done, {"topic": name, "deleted": was_there}, output)


@topics.command(name="list")
@directory_option
@json_option
def list_topics(place: Path, output: Output) -> None:
    """Print the names of all topics."""
    from laststand.cli.output.tables import print_json

    names = [topic.name for topic in administer(locate(place), lambda admin: admin.describe_topics())]
    if output is Output.JSON:
        print_json(names)
        return
    for name in names:
        click.echo(name)


@topics.command(short_help="Print partitions as the controller has them.")
@click.argument("names", nargs=-1, shell_complete=complete_topics)
@click.option(
    "--topic",
    "more_names",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_topics,
    help="One more of NAMES. May be repeated.",
)
@click.option("--under-replicated-partitions", is_flag=True, help="Only partitions that lack a replica in the ISR.")
@click.option("--under-min-isr-partitions", is_flag=True, help="Only partitions that refuse acks=all.")
@click.option(
    "--at-min-isr-partitions",
    is_flag=True,
    help="Only partitions that would refuse acks=all if one more member left the ISR.",
)
@click.option("--unavailable-partitions", is_flag=True, help="Only partitions without a leader.")
@click.option("--topics-with-overrides", is_flag=True, help="Only topics that have configs of their own.")
@click.option(
    "--partition-size-limit-per-response",
    "page_size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Partitions of one response at most; more are asked for page by page.  [default: 2000]",
)
@directory_option
@json_option
def describe(
    names: tuple[str, ...],
    more_names: tuple[str, ...],
    *,
    under_replicated_partitions: bool,
    under_min_isr_partitions: bool,
    at_min_isr_partitions: bool,
    unavailable_partitions: bool,
    topics_with_overrides: bool,
    page_size: int | None,
    place: Path,
    output: Output,
) -> None:
    """Print every partition of NAMES, or of all topics, as the controller has it.

    Only partitions that match all given filters are printed.
    """
    from laststand.chaos.standing.order import read_order
    from laststand.cli.output.tables import print_json
    from laststand.emulator.core.broker.replicas.high_watermark import effective_min_isr

    directory = locate(place)
    listings = administer(directory, lambda admin: describe_all(admin, (*names, *more_names), page_size=page_size))
    switches = read_order(directory).rules()
    if topics_with_overrides:
        listings = [listing for listing in listings if listing.configs]

    def is_wanted(partition: "messages.DescribedPartition", min_isr: int) -> bool:
        return (
            (not under_replicated_partitions or len(partition.isr) < len(partition.replicas))
            and (not under_min_isr_partitions or len(partition.isr) < min_isr)
            and (not at_min_isr_partitions or len(partition.isr) == min_isr)
            and (not unavailable_partitions or partition.leader is None)
        )

    wanted = [
        msgspec.structs.replace(
            listing,
            topic=msgspec.structs.replace(
                listing.topic,
                partitions=tuple(
                    partition
                    for partition in listing.topic.partitions
                    if is_wanted(
                        partition,
                        effective_min_isr(
                            min_insync_replicas=listing.min_insync_replicas,
                            replica_count=len(partition.replicas),
                            switches=switches,
                        ),
                    )
                ),
            ),
        )
        for listing in listings
    ]
    is_filtered = any(
        (under_replicated_partitions, under_min_isr_partitions, at_min_isr_partitions, unavailable_partitions)
    )
    if output is Output.JSON:
        print_json(wanted)
        return
    for listing in wanted:
        if not is_filtered:
            click.echo(topic_line(listing))
        for partition in listing.topic.partitions:
            click.echo(partition_line(listing.topic.name, partition))


@topics.command()
@topic_argument
@click.option(
    "--partitions", type=click.IntRange(min=1), metavar="N", help="Number of partitions to have, more than now."
)
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="A property to set. May be repeated.")
@click.option("--delete-config", "deleted", multiple=True, metavar="KEY", help="A property to reset. May be repeated.")
@directory_option
@json_option
def alter(
    name: str, partitions: int | None, configs: tuple[str, ...], deleted: tuple[str, ...], place: Path, output: Output
) -> None:
    """Add partitions to a topic, or change its properties."""
    from laststand.cli.options.assignments import assignments, changes_of
    from laststand.emulator.core import admin_messages
    from laststand.emulator.core.types import ConfigResource

    properties = assignments("--config", configs)
    changes = changes_of(ConfigResource.TOPIC, properties, deleted)
    if partitions is None and not changes:
        raise UserError("nothing to alter: give --partitions, --config or --delete-config")

    async def change(admin: "AdminClient") -> None:
        if partitions is not None:
            await admin.create_partitions(admin_messages.CreatablePartitions(name=name, count=partitions))
        if changes:
            await admin.alter_configs(ConfigResource.TOPIC, name, changes)

    directory = locate(place)
    warn_of_deprecated(properties, era=era_of(directory))
    administer(directory, change)
    report_done(f"Altered topic {name}.", {"topic": name}, output)


async def describe_all(
    admin: "AdminClient", names: "Sequence[str]", *, page_size: int | None = None
) -> list[TopicListing]:
    """Returns topics with their configuration.

    Args:
        admin: the client for the requests.
        names: of the topics; all topics if empty.
        page_size: maximal number of partitions in one response; the client's default if ``None``.

    Raises:
        UserError: a topic does not exist.
        AdminError: no answer came.
    """
    from laststand.emulator.client.admin import DESCRIBED_TOPICS_MAX
    from laststand.emulator.core import admin_messages
    from laststand.emulator.core.errors import ErrorCode
    from laststand.emulator.core.types import ConfigResource

    listings = []
    for topic in await admin.describe_topics(names or None, page_size=page_size or DESCRIBED_TOPICS_MAX):
        if topic.error is not ErrorCode.NONE:
            raise UserError(f"topic {topic.name}: {topic.error.name}")
        configs = await admin.describe_configs(ConfigResource.TOPIC, topic.name)
        listings.append(
            TopicListing(
                topic=topic,
                configs={
                    config.name: config.value or ""
                    for config in configs
                    if config.source is admin_messages.ConfigSource.DYNAMIC_TOPIC_CONFIG
                    and config.synonyms[0].name == config.name
                },
                min_insync_replicas=next(int(c.value or 1) for c in configs if c.name == "min.insync.replicas"),
            )
        )
    return listings


def topic_line(listing: TopicListing) -> str:
    """Returns the line about a topic, in the form of kafka-topics.sh."""
    topic = listing.topic
    factor = max((len(partition.replicas) for partition in topic.partitions), default=0)
    configs = ",".join(f"{name}={value}" for name, value in sorted(listing.configs.items()))
    return (
        f"Topic: {topic.name}\tTopicId: {topic.topic_id}\tPartitionCount: {len(topic.partitions)}\t"
        f"ReplicationFactor: {factor}\tConfigs: {configs}"
    )


def partition_line(topic: str, partition: "messages.DescribedPartition") -> str:
    """Returns the line about a partition, in the form of kafka-topics.sh of Kafka 4, with RECOVERING (KIP-704)."""
    leader = "none" if partition.leader is None else partition.leader
    lists = "\t".join(
        f"{name}: {','.join(map(str, members))}"
        for name, members in (
            ("Replicas", partition.replicas),
            ("Isr", partition.isr),
            ("Elr", partition.elr),
            ("LastKnownElr", partition.last_known_elr),
        )
    )
    recovering = "\tLeaderRecoveryState: RECOVERING" if partition.leader_recovery_state.value else ""
    return f"\tTopic: {topic}\tPartition: {partition.partition}\tLeader: {leader}\t{lists}{recovering}"


def parse_assignment(text: str) -> "tuple[tuple[BrokerId, ...], ...]":
    """Returns the replicas of each partition in a text like ``0:1:2,1:2:0``.

    Raises:
        UserError: the text is not such an assignment.
    """
    from laststand.emulator.core.types import BrokerId, NodeId

    partitions = []
    for part in text.split(","):
        ids = part.split(":")
        if not all(each.strip().isdecimal() for each in ids) or len(set(ids)) != len(ids):
            raise UserError(f"--replica-assignment {text}: {part!r} is no list of different broker ids like 0:1:2")
        partitions.append(tuple(BrokerId(NodeId(int(each))) for each in ids))
    return tuple(partitions)

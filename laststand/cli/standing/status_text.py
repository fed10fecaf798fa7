"""The state of a standing cluster, as text and as a document."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from laststand.cli.output.output import Output
from laststand.cli.output.tables import print_json, print_listing
from laststand.emulator.report.numbers import plural

if TYPE_CHECKING:
    from laststand.chaos.standing.status import NodeStatus, PartitionStatus, StatusReport, ZooKeeperStatus
    from laststand.emulator.core.types import NodeId


def print_status(report: "StatusReport", *, has_metrics: bool = False, output: Output) -> None:
    """Prints a report, as text or as one JSON object, which has the nodes' metrics, too.

    Args:
        report: to be printed.
        has_metrics: whether the text has the metrics, and their addresses.
        output: the form.
    """
    if output is Output.JSON:
        print_json(status_document(report))
        return
    click.echo(f"{report.directory}  era {report.era}, supervisor {report.supervisor_pid}")
    if report.view is not None:
        click.echo(f"live view: {report.view}")
    if report.zookeeper is not None:
        click.echo(_controller(report.zookeeper))
    click.echo()
    _print_nodes(report, has_metrics=has_metrics)
    if report.bootstrap_servers:
        click.echo()
        print_listing(
            ("CLIENT OF KAFKA", "BOOTSTRAP.SERVERS"),
            [(client, ",".join(servers)) for client, servers in report.bootstrap_servers.items()],
        )
    if report.partitions:
        click.echo()
        _print_partitions(report.partitions)
    click.echo()
    click.echo(_summary(report))
    for fault in report.faults:
        click.echo(f"  fault: {fault}")
    for client in report.clients:
        click.echo(f"  client: {client}")
    if report.problem is not None:
        click.echo(f"  the verdict will be unknown: {report.problem}")
    if has_metrics:
        _print_metrics(_metrics(report))


def _print_nodes(report: "StatusReport", *, has_metrics: bool) -> None:
    header = ("NODE", "ROLE", "STATE", "PID", "INCARNATION", "EPOCH", "FENCED", "ADDRESS")
    print_listing(
        (*header, *(("METRICS",) if has_metrics else ())),
        [
            (
                node.node_id,
                _role(node, report),
                node.state,
                node.pid,
                node.incarnation,
                node.broker_epoch,
                None if node.fenced is None else "yes" if node.fenced else "no",
                node.address,
                *((node.metrics_url,) if has_metrics else ()),
            )
            for node in report.nodes
        ],
    )


def _print_partitions(partitions: "Sequence[PartitionStatus]") -> None:
    print_listing(
        ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "ELR", "MIN ISR", "ELECTABLE", ""),
        [
            (
                f"{each.topic}-{each.partition}",
                "none" if each.leader is None else each.leader,
                each.leader_epoch,
                ids(each.replicas),
                ids(each.isr),
                ids(each.elr),
                each.min_insync_replicas,
                each.electable_leaders,
                ", ".join(_words(each)),
            )
            for each in partitions
        ],
    )


def _words(partition: "PartitionStatus") -> Iterator[str]:
    """Yields descriptions of a partition's problems."""
    if partition.is_offline:
        yield "offline"
    if partition.is_under_min_isr:
        yield "under min ISR"
    if partition.is_under_replicated:
        yield "under-replicated"
    if partition.is_recovering:
        yield "RECOVERING"


def status_document(report: "StatusReport") -> dict[str, object]:
    """Returns a report and the nodes' metrics as a document."""
    return {**msgspec.structs.asdict(report), "metrics": _metrics(report)}


def _metrics(report: "StatusReport") -> "dict[NodeId, dict[str, float]]":
    from laststand.chaos.standing.metrics import read_metrics
    from laststand.emulator.cluster.layout import token_file
    from laststand.emulator.rpc.run_token import RunToken

    token = RunToken.read(token_file(Path(report.directory)))
    return {node.node_id: found for node in report.nodes if (found := read_metrics(node, token)) is not None}


def _print_metrics(metrics: "Mapping[NodeId, Mapping[str, float]]") -> None:
    """Prints a row per metric and a column per node, as far as they have it."""
    if not metrics:
        return
    names = dict.fromkeys(name for found in metrics.values() for name in found)
    click.echo()
    print_listing(
        ("METRIC", *(str(node_id) for node_id in metrics)),
        [(name, *(_number(found.get(name)) for found in metrics.values())) for name in names],
    )


def _number(value: float | None) -> int | None:
    return None if value is None else int(value)


def _summary(report: "StatusReport") -> str:
    partitions = report.partitions
    return (
        f"{plural(len(partitions), 'partition')}: "
        f"{sum(each.is_offline for each in partitions)} offline, "
        f"{sum(each.is_under_min_isr for each in partitions)} under min ISR, "
        f"{sum(each.is_under_replicated for each in partitions)} under-replicated; "
        f"{plural(len(report.faults), 'fault')} in force"
    )


def _role(node: "NodeStatus", report: "StatusReport") -> str:
    held = report.zookeeper
    if node.is_active:
        return f"{node.role}, active"
    return "broker, controller" if held is not None and held.controller == node.node_id else node.role


def _controller(held: "ZooKeeperStatus") -> str:
    who = "nobody is elected" if held.controller is None else f"broker {held.controller}"
    epoch = "no epoch yet" if held.controller_epoch is None else f"controller epoch {held.controller_epoch}"
    return f"controller: {who}, {epoch}, last zxid {held.last_zxid:#x} ({held.last_zxid})"


def ids(brokers: Sequence[int]) -> str:
    """Returns broker ids in the form of Kafka's tools."""
    return ",".join(str(broker) for broker in brokers)

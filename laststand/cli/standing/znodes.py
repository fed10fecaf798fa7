"""``laststand inspect /PATH``: shows ZooKeeper's nodes, from its transaction log."""

from pathlib import Path

import click
import msgspec

from laststand.cli.output.output import Output
from laststand.cli.output.tables import print_json
from laststand.cli.program.user_error import UserError


class PrintedZnode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the tree.

    Attributes:
        data: as text; bytes that are not text are written as escapes.
        ephemeral_owner: the session that owns it, in hexadecimal; ``None`` for a persistent node.
    """

    path: str
    version: int
    czxid: int
    mzxid: int
    ephemeral_owner: str | None
    data: str


def print_znodes(directory: Path, root: str, *, output: Output) -> None:
    """Prints a node and all below it.

    Args:
        directory: of the cluster, up or down.
        root: the node.
        output: the form.

    Raises:
        UserError: the cluster has no ZooKeeper, or there is no such node.
        StorageError: a file of the server is not a transaction log.
    """
    from laststand.emulator.plan.nodes import CONTROLLER
    from laststand.emulator.zookeeper.transaction_log import TransactionLogReader

    data = directory / "nodes" / str(CONTROLLER) / "data"
    if not (data / "version-2").is_dir():
        raise UserError(
            f"{root}: the cluster in {directory} has no ZooKeeper; expected TOPIC-PARTITION, such as orders-0"
        )
    log = TransactionLogReader(data)
    for _ in log.read_new():
        pass
    nodes = [
        PrintedZnode(
            path=path,
            version=node.version,
            czxid=node.czxid,
            mzxid=node.mzxid,
            ephemeral_owner=None if node.session_id is None else f"{node.session_id:#x}",
            data=node.data.decode(errors="backslashreplace"),
        )
        for path, node in log.tree(root).items()
    ]
    if not nodes:
        raise UserError(f"no node {root} in ZooKeeper; try: laststand inspect /")
    if output is Output.JSON:
        print_json(nodes)
        return
    click.echo(f"ZooKeeper as of zxid {log.last_zxid:#x}")
    for each in nodes:
        click.echo(_line(each))


def _line(node: PrintedZnode) -> str:
    owner = "" if node.ephemeral_owner is None else f", ephemeral of {node.ephemeral_owner}"
    stat = f"{node.path}  version {node.version}, mzxid {node.mzxid:#x}{owner}"
    return f"{stat}: {node.data}" if node.data else stat

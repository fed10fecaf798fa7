"""The proof that a node's certificate is refused."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from laststand.chaos.process.faults.certificates import _refusal
from laststand.emulator.core.types import NodeId
from laststand.emulator.rpc.authority import Authority
from laststand.emulator.rpc.certificates import FOLDER, HARNESS, Certificates
from laststand.emulator.rpc.run_token import RunToken


@pytest.mark.parametrize(
    ("is_expired", "answer", "refused"),
    [(False, b"!", ""), (True, b"!", "the connection is closed"), (False, b"", None), (True, b"", None)],
    ids=["let in", "refused", "whoever comes is sent away", "refused by a node that sends everybody away"],
)
async def test_a_node_refuses_a_certificate_only_while_it_answers_the_harness(
    tmp_path: Path, *, is_expired: bool, answer: bytes, refused: str | None
) -> None:
    folder = tmp_path / FOLDER
    authority = Authority.read_or_make(folder)
    for name in ("broker-0", "broker-1", HARNESS):
        authority.issue(name)
    if is_expired:
        authority.issue_expired("broker-0")

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    context = Certificates(folder, "broker-1").dialled_context()
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    target = target_of(folder, server.sockets[0].getsockname()[1])
    assert await _refusal(target, NodeId(0)) == refused
    server.close()
    assert await _refusal(target, NodeId(0)) is None, "nobody listens there any more"


def target_of(folder: Path, port: int) -> Any:
    """Returns a target of two nodes of which the second listens."""
    token = RunToken("0" * 64, Certificates(folder, HARNESS))
    cluster = SimpleNamespace(
        layout=SimpleNamespace(node_ids=(NodeId(0), NodeId(1)), tls_folder=folder),
        direct_addresses=lambda: {NodeId(1): f"127.0.0.1:{port}"},
        token=token,
    )
    return cast(Any, SimpleNamespace(cluster=cluster, is_answering=lambda _: True))

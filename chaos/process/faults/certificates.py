"""Certificates that expire or are renewed while nodes run: those that a node presents as a client.

Open connections would continue, so they are closed, as by the restart of a listener. To check whether a node is
accepted, the harness connects to another node with that node's certificate.
"""

import asyncio
import ssl
from typing import TYPE_CHECKING, Final

from laststand.chaos.process.faults.links import PASSES_WITHIN_S, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.probe import ProbeConnection, ProbeOutcome, probe
from laststand.emulator.core.requester import node_name
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.rpc.certificates import Certificates

if TYPE_CHECKING:
    from laststand.emulator.rpc.authority import Authority

_LET_IN: Final = ""


@executes(actions.ExpireCertificate)
async def expire_certificate(target: ProcessTarget, action: actions.ExpireCertificate[NodeId]) -> actions.Outcome:
    """Replaces client certificates by expired ones."""
    if not target.cluster.layout.has_tls:
        return actions.no_op(actions.NO_TLS)
    if all([await _refusal(target, node_id) for node_id in action.nodes]):
        return actions.no_op("it has expired already")
    authority = _authority(target)
    for node_id in action.nodes:
        authority.issue_expired(node_name(node_id))
    dialled = [link for node_id in action.nodes for link in proxies(target).links_of(node_id) if link.source == node_id]
    cut = await proxies(target).cut(dialled)
    await proxies(target).restore(cut)
    refusals = [await _refusal(target, node_id) for node_id in action.nodes]
    if not all(refusals):
        return actions.unproved("a node is still let in, or nobody answers")
    return actions.effective(f"refused: {', '.join(sorted(set(filter(None, refusals))))}")


@executes(actions.RenewCertificate)
async def renew_certificate(target: ProcessTarget, action: actions.RenewCertificate[NodeId]) -> actions.Outcome:
    """Has the cluster's authority issue new certificates."""
    if not target.cluster.layout.has_tls:
        return actions.no_op(actions.NO_TLS)
    authority = _authority(target)
    for node_id in action.nodes:
        authority.issue(node_name(node_id))
    if any([await _refusal(target, node_id) != _LET_IN for node_id in action.nodes]):
        return actions.unproved("a node is not let in, or nobody answers")
    return actions.effective("new connections show it")


def _authority(target: ProcessTarget) -> "Authority":
    # Imported here: only steps that make certificates need the library.
    from laststand.emulator.rpc.authority import Authority

    return Authority.read_or_make(target.cluster.layout.tls_folder)


async def _refusal(target: ProcessTarget, node_id: NodeId) -> str | None:
    """Returns why another node refuses a node's certificate; empty if it does not, ``None`` if no node answers."""
    cluster = target.cluster
    others = [other for other in cluster.layout.node_ids if other != node_id and target.is_answering(other)]
    if not others:
        return None
    address = cluster.direct_addresses()[others[0]]
    reason = await _end_of_connection(
        address, Certificates(cluster.layout.tls_folder, node_name(node_id)).dialling_context()
    )
    if not reason:
        return reason
    # A node that ends closes connections, too: it refuses one only while it answers the harness.
    outcome = await probe(address, timeout_s=PASSES_WITHIN_S, context=cluster.token.dialling_context)
    return reason if outcome is ProbeOutcome.PASSES else None


async def _end_of_connection(address: str, context: ssl.SSLContext) -> str | None:
    """Returns why a node closes a connection; empty if the node answers, ``None`` if it does neither in time."""
    try:
        async with asyncio.timeout(PASSES_WITHIN_S), ProbeConnection(address, context) as connection:
            return _LET_IN if await connection.reader.read(1) else "the connection is closed"
    except ssl.SSLError as error:
        return (error.reason or str(error)).lower().replace("_", " ")
    except TimeoutError:
        return None
    except OSError as error:
        return f"the connection is closed ({type(error).__name__})"

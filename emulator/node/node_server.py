"""The gRPC server of a node of either role: requests, faults of messages, orders to the clock, health checks."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from laststand.emulator.core import events
from laststand.emulator.core.node_clock import NodeClock
from laststand.emulator.core.principal_rules import PrincipalRules
from laststand.emulator.node.clock_changes import change_clock
from laststand.emulator.node.config import NodeConfig
from laststand.emulator.rpc.channel import Keepalive
from laststand.emulator.rpc.inbound import NodeServer, OnRequest
from laststand.emulator.rpc.interception import Interceptor
from laststand.emulator.rpc.run_token import RunToken

Record: TypeAlias = Callable[[events.MessageIntercepted | events.OrderReceived | events.AuthenticationFailed], None]
"""Writes an event that belongs to no turn."""


def make_node_server(
    config: NodeConfig,
    *,
    keepalive: Keepalive,
    token: RunToken,
    on_request: OnRequest,
    record: Record,
    clock: NodeClock,
    rearm: Callable[[], None],
    is_healthy: Callable[[], bool],
) -> NodeServer:
    """Returns a server that is not started yet, with the services of both roles only.

    Args:
        config: of this incarnation.
        keepalive: of its connections.
        token: of the cluster, which callers must have.
        on_request: receives each request.
        record: records intercepted messages, orders, and refused callers.
        clock: that orders change.
        rearm: is called after the clock has changed, to set the timer again.
        is_healthy: answers health checks, if the configuration has them.
    """
    server = NodeServer(
        keepalive=keepalive,
        token=token,
        on_request=on_request,
        interceptor=Interceptor(config.node_id, config.interceptions, record=record),
        on_order=record,
        on_refusal=record,
        rules=PrincipalRules(config.node_properties().ssl_principal_mapping_rules),
    )
    server.add_clock(partial(change_clock, clock, rearm=rearm))
    if config.has_health_checks:
        server.add_health(is_healthy)
    return server

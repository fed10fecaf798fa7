"""Options of gRPC channels and servers, each of them measured or needed.

A peer that is cut off must be noticed in a fraction of the session timeout, though nothing is sent: keepalive pings go
out on idle connections, and a ping that stays unanswered closes its connection. gRPC bounds that wait twice, by
``keepalive_timeout_ms`` and by ``http2.ping_timeout_ms``; with the first alone nothing is noticed for a minute.

After a failure a channel redials quickly, but gives each attempt a whole second: at the default backoff a node that is
back waits another second for its peers, while with a shorter deadline a link of 300 ms latency never connects.

Each channel has its own connection (``use_local_subchannel_pool``), so that data never delays heartbeats.
"""

from typing import Final

import grpc.aio
import msgspec

from emulator.core.types import NodeId
from emulator.rpc.interception import user_agent

_UNLIMITED: Final = -1
_KEEPALIVE_MIN_MS: Final = 50

_TRANSPORT_OPTIONS: Final = (
    ("grpc.max_send_message_length", _UNLIMITED),
    ("grpc.max_receive_message_length", _UNLIMITED),
    ("grpc.http2.max_frame_size", 1 << 20),
    ("grpc.http2.lookahead_bytes", 4 << 20),
    ("grpc.so_reuseport", 0),
)

_RECONNECT_OPTIONS: Final = (
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 1000),  # the connect deadline, too
    ("grpc.max_reconnect_backoff_ms", 200),
)


class Keepalive(msgspec.Struct, frozen=True, kw_only=True):
    """How soon a silent peer is given up.

    Attributes:
        interval_ms: silence after which a ping is sent.
        timeout_ms: how long its answer may take.
    """

    interval_ms: int
    timeout_ms: int


def keepalive_for(*, session_timeout_ms: int) -> Keepalive:
    """Returns the keepalive of a cluster: a quarter of the session timeout each, so half of it together."""
    quarter = max(_KEEPALIVE_MIN_MS, session_timeout_ms // 4)
    return Keepalive(interval_ms=quarter, timeout_ms=quarter)


def channel_options(keepalive: Keepalive, *, dialler: NodeId | None) -> list[tuple[str, int | str]]:
    """Returns the options of a client's channel; ``dialler`` as for ``open_channel``."""
    named = [] if dialler is None else [("grpc.primary_user_agent", user_agent(dialler))]
    return [
        *named,
        *_TRANSPORT_OPTIONS,
        *_RECONNECT_OPTIONS,
        *_keepalive_options(keepalive),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0),
    ]


def server_options(keepalive: Keepalive) -> list[tuple[str, int]]:
    """Returns the options of a server: pings from clients never count as misuse, and vanished clients are noticed."""
    return [
        *_TRANSPORT_OPTIONS,
        *_keepalive_options(keepalive),
        ("grpc.http2.min_ping_interval_without_data_ms", keepalive.interval_ms // 2),
        ("grpc.http2.max_ping_strikes", 0),
    ]


def _keepalive_options(keepalive: Keepalive) -> list[tuple[str, int]]:
    return [
        ("grpc.keepalive_time_ms", keepalive.interval_ms),
        ("grpc.keepalive_timeout_ms", keepalive.timeout_ms),
        ("grpc.http2.ping_timeout_ms", keepalive.timeout_ms),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def open_channel(address: str, keepalive: Keepalive, *, dialler: NodeId | None = None) -> grpc.aio.Channel:
    """Returns a channel to ``host:port``; it connects when first used.

    Args:
        address: of the peer.
        keepalive: how soon it is given up when it is silent.
        dialler: whose channel it is; ``None`` for one whose messages no fault may touch.
    """
    return grpc.aio.insecure_channel(address, options=channel_options(keepalive, dialler=dialler))


def as_is(payload: bytes) -> bytes:
    """The serializer and deserializer of every method: the codecs do that work, outside gRPC."""
    return payload

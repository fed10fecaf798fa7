"""Another local user, who tries everything that a cluster listens to: ``python stranger.py < TARGETS > OUTCOMES``.

It becomes the user ``nobody`` where it may, and tries as whoever it is otherwise; the token it knows in no case. Every
port gets every attempt, whatever listens there.
"""

import json
import os
import socket
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPException

import grpc

NOBODY = 65534
TIMEOUT_S = 60
HUGE = bytes(8 << 20)
CALLS = {
    "clock": "/laststand.Clock/Change",
    "interception": "/laststand.Interception/Intercept",
    "create topics": "/laststand.Controller/CreateTopics",
    "controller": "/laststand.Controller/Metadata",
    "broker": "/laststand.Broker/Metadata",
    "health": "/grpc.health.v1.Health/Check",
    "no such method": "/no.such.Service/Method",
}
GREETINGS = {
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)),
    "HTTP": b"GET /metrics HTTP/1.1\r\n\r\n",
    "Kafka": bytes((0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255)),
}
LISTENER = json.dumps({"name": "stranger", "listen": "0.0.0.0:0", "upstream": "127.0.0.1:1", "enabled": True}).encode()


def as_is(message: bytes) -> bytes:
    return message


def call(port: int, path: str, request: bytes) -> str:
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_send_message_length", -1)]) as channel:
        for kind in (channel.unary_unary, channel.unary_stream):
            try:
                answer = kind(path, as_is, as_is)(request, timeout=TIMEOUT_S, metadata=(("laststand-token", "0" * 64),))
                if kind == channel.unary_stream:
                    next(iter(answer))
            except grpc.RpcError as error:
                code = error.code().name
                if code != "UNAUTHENTICATED":
                    return str(code)
            else:
                return "answered"
    return "UNAUTHENTICATED"


def stream(port: int, path: str) -> str:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            return (
                f"answered {next(iter(channel.stream_stream(path, as_is, as_is)(iter([b'x']), timeout=TIMEOUT_S)))!r}"
            )
        except StopIteration:
            return "ended"
        except grpc.RpcError as error:
            return str(error.code().name)


def http(port: int, method: str, path: str, body: bytes | None = None) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return f"{answer.status}"
    except urllib.error.HTTPError as error:
        return f"{error.code}"
    except (OSError, ValueError, HTTPException) as error:
        return type(error).__name__


def tls(port: int, greeting: bytes) -> str:
    """Speaks TLS, without a certificate, and shows no interest in the other's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as plain, context.wrap_socket(plain) as stream:
            stream.sendall(greeting)
            return "answered" if stream.recv(1) else "ended"
    except OSError as error:
        return type(error).__name__


def attempt(name: str, work: Callable[[], object]) -> str:
    try:
        work()
    except OSError as error:
        return type(error).__name__
    return f"{name} was possible"


def look(path: str) -> None:
    os.close(os.open(path, os.O_RDONLY))


def connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)


def take(port: int) -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()


def tried(targets: dict[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    for port in map(int, targets["ports"]):
        for name, path in CALLS.items():
            yield str(port), f"call {name}", call(port, path, b"{}")
        yield str(port), "huge call", call(port, CALLS["clock"], HUGE)
        yield str(port), "stream", stream(port, "/laststand.Broker/Produce")
        for name, greeting in GREETINGS.items():
            yield str(port), f"TLS {name}", tls(port, greeting)
        for method, path, body in (
            ("GET", "/proxies", None),
            ("POST", "/proxies", LISTENER),
            ("POST", "/reset", b""),
            ("GET", "/metrics", None),
            ("GET", "/", None),
            ("POST", "/actions", b"{}"),
        ):
            yield str(port), f"{method} {path}", http(port, method, path, body)
    for path in targets["paths"]:
        yield path, "look", attempt("looking", partial(look, path))
    for path in targets["sockets"]:
        yield path, "connect", attempt("connecting", partial(connect, path))
    for port in map(int, targets["down"]):
        yield str(port), "listen in place of a node", attempt("listening", partial(take, port))


def main() -> None:
    # What is imported late would not be found afterwards, where the interpreter is in somebody's home.
    list(tried({"ports": ["1"], "paths": ["/"], "sockets": ["/"], "down": []}))
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    json.dump(list(tried(json.load(sys.stdin))), sys.stdout)


if __name__ == "__main__":
    main()

"""SASL on the listener: what is refused, put on record once, and closed."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, SaslConfig, Served
from laststand.emulator.kafka_listener.sasl import SASL
from laststand.emulator.kafka_listener.wire_errors import WireError

MECHANISMS = ("PLAIN", "SCRAM-SHA-256")
ALICE = b"\0alice\0alice-secret"


class Client:
    """A connection to a listener with SASL, on which nothing is proved yet."""

    def __init__(self) -> None:
        self.failures: list[events.AuthenticationFailed] = []
        self.is_closed = False
        self.principal = ""
        self.connection = SimpleNamespace(
            link=1001,
            number=1,
            peer="10.0.0.1:4711",
            exchange=None,
            is_authenticated=False,
            authenticate=self._authenticate,
            when_written=lambda callback: callback(True),  # noqa: FBT003
            close=self._close,
        )
        unused = dict.fromkeys(Served._fields, cast(Any, None))
        sasl = SaslConfig(MECHANISMS, {"alice": "alice-secret"})
        self.served = Served(**{**unused, "sasl": sasl, "note_denial": self.failures.append})

    def _authenticate(self, principal: str) -> None:
        self.principal, self.connection.is_authenticated, self.connection.exchange = principal, True, None

    def _close(self) -> None:
        self.is_closed = True

    def ask(self, api: str, version: int, **body: object) -> Message:
        key = api_named(api).key
        request = ClientRequest(key, version, body, cast(Any, self.connection))
        return cast(Message, asyncio.run(cast(Any, SASL[key](self.served, request))))

    def shake_hands(self, mechanism: str = "PLAIN", version: int = 1) -> Message:
        return self.ask("SaslHandshake", version, mechanism=mechanism)

    def prove(self, token: bytes) -> Message:
        return self.ask("SaslAuthenticate", 2, authBytes=token)


def after_plain(token: bytes) -> Callable[[Client], Message]:
    def act(client: Client) -> Message:
        assert client.shake_hands()["errorCode"] == ErrorCode.NONE
        return client.prove(token)

    return act


def test_a_client_with_the_password_is_that_user() -> None:
    client = Client()
    assert after_plain(ALICE)(client)["errorCode"] == ErrorCode.NONE
    assert (client.principal, client.failures, client.is_closed) == ("User:alice", [], False)
    assert client.shake_hands()["errorCode"] == WireError.ILLEGAL_SASL_STATE
    assert client.prove(ALICE)["errorCode"] == WireError.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    ("act", "error", "reason"),
    [
        (lambda client: client.shake_hands("GSSAPI"), WireError.UNSUPPORTED_SASL_MECHANISM, "unsupported mechanism"),
        (lambda client: client.shake_hands("SCRAM-SHA-512"), WireError.UNSUPPORTED_SASL_MECHANISM, "unsupported"),
        (lambda client: client.shake_hands("PLAIN", 0), WireError.UNSUPPORTED_SASL_MECHANISM, "unsupported mechanism"),
        (after_plain(b"\0alice\0guessed"), WireError.SASL_AUTHENTICATION_FAILED, "Invalid username or password"),
        (after_plain(b"\0mallory\0"), WireError.SASL_AUTHENTICATION_FAILED, "Invalid username or password"),
        (after_plain(b"bob\0alice\0alice-secret"), WireError.SASL_AUTHENTICATION_FAILED, "another|different"),
        (after_plain(b"alice"), WireError.SASL_AUTHENTICATION_FAILED, "no PLAIN token"),
        (after_plain(b"\xff\0\xfe\0\xfd\0"), WireError.SASL_AUTHENTICATION_FAILED, "no PLAIN token"),
    ],
)
def test_others_are_refused_and_that_is_on_record_once(
    act: Callable[[Client], Message], error: WireError, reason: str
) -> None:
    client = Client()
    assert act(client)["errorCode"] == error
    (failure,) = client.failures
    assert any(part in failure.reason for part in reason.split("|"))
    assert (failure.address, client.principal, client.is_closed) == ("10.0.0.1:4711", "", True)


def test_a_token_before_a_mechanism_is_none() -> None:
    client = Client()
    assert client.prove(ALICE)["errorCode"] == WireError.ILLEGAL_SASL_STATE
    assert client.principal == ""

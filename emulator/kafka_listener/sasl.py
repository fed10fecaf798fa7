"""SASL: PLAIN and SCRAM, in Kafka's two requests; a listener without SASL answers them as Kafka's does.

A client names its mechanism (SaslHandshake), authenticates (SaslAuthenticate), and then sends other requests. A client
that sends other requests earlier, or fails to authenticate, is disconnected; a failure is recorded as an event. Users
are those of ``sasl.jaas.config``, in the form of Kafka's ``PlainLoginModule`` for all mechanisms; Kafka keeps those of
SCRAM in its metadata.
"""

import hmac
from collections.abc import Mapping
from typing import Final

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.events import AuthenticationFailed
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import CauseId
from laststand.emulator.kafka_listener.connection import KafkaConnection
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, SaslConfig, Served
from laststand.emulator.kafka_listener.scram import ScramError, ScramServer
from laststand.emulator.kafka_listener.wire_errors import WireError

PLAIN: Final = "PLAIN"
_SHA_VERSION: Final = 1
"""Version of SaslHandshake from which tokens are requests of their own, not frames without a header."""


def sasl_config(properties: NodeProperties) -> SaslConfig | None:
    """Returns the configuration from properties; ``None`` without SASL."""
    if not properties.has_sasl:
        return None
    return SaslConfig(properties.sasl_mechanisms, properties.sasl_users)


class Exchange:
    """The authentication under way on one connection.

    Args:
        users: of the listener.
        mechanism: the mechanism that the client has chosen.
    """

    def __init__(self, users: SaslConfig, mechanism: str) -> None:
        self.mechanism = mechanism
        self._users = users
        self._scram = None if mechanism == PLAIN else ScramServer(mechanism, users.passwords)

    def respond(self, token: bytes) -> tuple[bytes, str | None]:
        """Returns the answer to a token, and the user once it is proved.

        Raises:
            ScramError: the client failed.
        """
        if self._scram is None:
            return b"", self._plain(token)
        answer = self._scram.respond(token)
        return answer, self._scram.user if self._scram.is_complete else None

    def _plain(self, token: bytes) -> str:
        """Returns the user of RFC 4616's ``authzid NUL authcid NUL passwd``."""
        parts = token.decode(errors="replace").split("\0")
        if len(parts) != len(("authzid", "authcid", "passwd")):
            raise ScramError("no PLAIN token")
        authorized, user, password = parts
        if authorized not in ("", user):
            raise ScramError("an authorization id that is different from the username")
        expected = self._users.passwords.get(user)
        # Compared in any case: how long it takes does not say whether there is such a user.
        is_right = hmac.compare_digest(password.encode(), (expected or "").encode())
        if expected is None or not is_right:
            raise ScramError("Invalid username or password")
        return user


def is_before_authentication(served: Served, connection: KafkaConnection) -> bool:
    """Returns whether a client has yet to authenticate."""
    return served.sasl is not None and not connection.is_authenticated


async def _handshake(served: Served, request: ClientRequest) -> Message:
    if served.sasl is None or request.connection.is_authenticated:
        return {"errorCode": WireError.ILLEGAL_SASL_STATE}
    mechanism, offered = request.body["mechanism"], served.sasl.mechanisms
    if mechanism not in offered or request.version < _SHA_VERSION:
        _fail(served, request, mechanism, "unsupported mechanism")
        return {"errorCode": WireError.UNSUPPORTED_SASL_MECHANISM, "mechanisms": offered}
    request.connection.exchange = Exchange(served.sasl, mechanism)
    return {"errorCode": ErrorCode.NONE, "mechanisms": offered}


async def _authenticate(served: Served, request: ClientRequest) -> Message:
    connection = request.connection
    exchange = connection.exchange
    if served.sasl is None or not isinstance(exchange, Exchange):
        message = "SaslAuthenticate request received after successful authentication"
        return {"errorCode": WireError.ILLEGAL_SASL_STATE, "errorMessage": message}
    try:
        answer, user = exchange.respond(request.body["authBytes"])
    except ScramError as error:
        _fail(served, request, exchange.mechanism, str(error))
        reason = "Invalid username or password"
        if exchange.mechanism != PLAIN:
            reason = (
                "Authentication failed during authentication due to invalid credentials with SASL mechanism "
                f"{exchange.mechanism}"
            )
        return {"errorCode": WireError.SASL_AUTHENTICATION_FAILED, "errorMessage": f"Authentication failed: {reason}"}
    if user is not None:
        connection.authenticate(f"User:{user}")
    return {"errorCode": ErrorCode.NONE, "authBytes": answer}


def _fail(served: Served, request: ClientRequest, mechanism: str, reason: str) -> None:
    """Records a failure, and has the connection closed once the client has its response."""
    connection = request.connection
    connection.exchange = None
    served.note_denial(
        AuthenticationFailed(
            cause_id=CauseId(f"kafka-{connection.link}-{connection.number}"),
            address=connection.peer,
            mechanism=mechanism,
            reason=reason,
        )
    )
    connection.when_written(lambda _: connection.close())


SASL: Final[Mapping[int, Handler]] = {
    api_named("SaslHandshake").key: _handshake,
    api_named("SaslAuthenticate").key: _authenticate,
}

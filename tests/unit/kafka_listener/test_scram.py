"""SCRAM, with a client that follows RFC 5802 by itself."""

import base64
import hashlib
import hmac

import pytest

from laststand.emulator.kafka_listener.scram import ScramError, ScramServer

PASSWORDS = {"alice": "alice-secret", "o=r,e": "pw"}


def proved(server: ScramServer, digest: str, user: str, password: str) -> bytes:
    """Answers a server's challenge; returns what it says at the end."""
    bare = f"n={user},r=clientnonce"
    challenge = server.respond(f"n,,{bare}".encode()).decode()
    nonce, salt, iterations = (part[2:] for part in challenge.split(","))
    assert nonce.startswith("clientnonce")
    final = f"c=biws,r={nonce}"
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(salt), int(iterations))
    client_key = hmac.digest(salted, b"Client Key", digest)
    exchanged = f"{bare},{challenge},{final}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), exchanged, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    answer = server.respond(f"{final},p={base64.b64encode(proof).decode()}".encode())
    assert answer == b"v=" + base64.b64encode(
        hmac.digest(hmac.digest(salted, b"Server Key", digest), exchanged, digest)
    )
    return answer


@pytest.mark.parametrize(("mechanism", "digest"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")])
def test_a_client_with_the_password_is_let_in(mechanism: str, digest: str) -> None:
    server = ScramServer(mechanism, PASSWORDS)
    assert not server.is_complete
    proved(server, digest, "alice", "alice-secret")
    assert (server.user, server.is_complete) == ("alice", True)


def test_a_name_may_have_characters_that_separate_fields() -> None:
    server = ScramServer("SCRAM-SHA-256", PASSWORDS)
    proved(server, "sha256", "o=3Dr=2Ce", "pw")
    assert server.user == "o=r,e"


@pytest.mark.parametrize(("user", "password"), [("alice", "guessed"), ("mallory", "")])
def test_orders_of_others_to_end_are_refused_whatever_name_they_give(user: str, password: str) -> None:
    server = ScramServer("SCRAM-SHA-256", PASSWORDS)
    with pytest.raises(ScramError, match="unknown user or wrong password"):
        proved(server, "sha256", user, password)
    assert not server.is_complete


def test_a_salt_is_that_of_its_user_known_or_not_whatever_the_password() -> None:
    passwords = {"alice": "same", "bob": "same"}

    def salt(user: str) -> str:
        challenge = ScramServer("SCRAM-SHA-256", passwords).respond(f"n,,n={user},r=x".encode()).decode()
        return challenge.split(",")[1]

    salts = {user: salt(user) for user in ("alice", "bob", "mallory", "eve")}
    assert len(set(salts.values())) == len(salts)
    assert salts == {user: salt(user) for user in salts}


@pytest.mark.parametrize(
    "messages",
    [
        [b"\xff\xfe"],
        [b"p=tls-unique,,n=alice,r=x"],
        [b"n,,n=alice"],
        [b"n,,n=alice,r=x", b"c=biws,r=other,p=AAAA"],
        [b"n,,n=alice,r=x", b""],
        [b"n,,n=alice,r=x", b"c=biws,r=x,p=!"],
    ],
)
def test_nonsense_is_refused(messages: list[bytes]) -> None:
    server = ScramServer("SCRAM-SHA-512", PASSWORDS)
    *before, last = messages
    for message in before:
        server.respond(message)
    with pytest.raises(ScramError):
        server.respond(last)

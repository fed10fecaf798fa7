"""TLS on the listener: who is let in, who is not, and why; asked with ``openssl s_client``."""

import asyncio
import os
import shutil
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.principal_rules import PrincipalRules
from laststand.emulator.core.properties import NodeProperties, node_properties
from laststand.emulator.core.types import NodeId
from laststand.emulator.kafka_listener.listener import KafkaListener
from laststand.emulator.kafka_listener.tls import ListenerTls, TlsGate, server_context, subject_of
from laststand.emulator.rpc.interception import Interceptor
from tests.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def properties(authority: Authority) -> NodeProperties:
    return node_properties(
        {
            "listener.security.protocol.map": "KAFKA:SSL",
            "ssl.keystore.location": str(authority.issue("broker")),
            "ssl.truststore.location": str(authority.certificate),
            "ssl.client.auth": "required",
        }
    )


async def failures_of(properties: NodeProperties, *arguments: str, text: bytes | None = None) -> list[str]:
    """Returns the reasons why one client was not let in; it is openssl, unless it says a text."""
    failed: list[events.Event] = []
    listener = KafkaListener(Interceptor(NodeId(0), record=failed.append), properties, record=failed.append)
    await listener.start("127.0.0.1", {NodeId(1001): 0})
    (port,) = listener.ports
    if text is None:
        command = ("openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-ign_eof", *arguments)
        client = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        await asyncio.wait_for(client.wait(), 20)
    else:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text)
        await asyncio.wait_for(reader.read(), 20)
        writer.close()
    await listener.close()
    assert all(isinstance(event, events.AuthenticationFailed) and event.mechanism == "SSL" for event in failed)
    return [event.reason for event in failed if isinstance(event, events.AuthenticationFailed)]


async def test_a_client_with_a_certificate_of_the_authority_is_let_in(
    authority: Authority, properties: NodeProperties
) -> None:
    alice = str(authority.issue("alice"))
    assert await failures_of(properties, "-cert", alice, "-key", alice) == []


async def test_others_are_refused_once_with_the_reason(
    authority: Authority, properties: NodeProperties, tmp_path: Path
) -> None:
    expired = str(authority.issue("expired", days=-1))
    foreign = str(Authority(tmp_path, "foreign").issue("alice"))
    own = tmp_path / "foreign.pem"
    own.write_text(own.read_text() + (tmp_path / "foreign.key").read_text())
    assert await failures_of(properties, "-cert", expired, "-key", expired) == ["certificate has expired"]
    (reason,) = await failures_of(properties, "-cert", foreign, "-key", foreign)
    assert "unable to get" in reason
    (reason,) = await failures_of(properties, "-cert", str(own), "-key", str(own))
    assert "self" in reason
    (reason,) = await failures_of(properties)
    assert "did not return a certificate" in reason


async def test_a_client_without_tls_or_with_an_old_one_is_refused(properties: NodeProperties) -> None:
    (reason,) = await failures_of(properties, text=b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff")
    assert reason
    (reason,) = await failures_of(properties, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0")
    assert reason in ("unsupported protocol", "version too low", "wrong version number", "no protocols available")


def test_a_key_without_its_certificate_is_a_mistake_of_the_user(authority: Authority, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.pem"
    one, another = authority.issue("one").read_text(), authority.issue("another").read_text()
    mixed.write_text(one[: one.index("-----BEGIN PRIVATE")] + another[another.index("-----BEGIN PRIVATE") :])
    for path, reason in ((mixed, "KEY_VALUES_MISMATCH"), (tmp_path / "nowhere", "No such file")):
        given = {"listener.security.protocol.map": "KAFKA:SSL", "ssl.keystore.location": str(path)}
        with pytest.raises(ConfigError, match=reason):
            server_context(node_properties(given))
    assert server_context(NodeProperties()) is None


def shown_by(context: ssl.SSLContext) -> bytes | None:
    """Returns the certificate that a client is shown in a handshake in memory."""
    inbound, outbound = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_context = ssl.create_default_context()
    client_context.check_hostname = False
    client_context.verify_mode = ssl.CERT_NONE
    client = client_context.wrap_bio(inbound, outbound)
    server = context.wrap_bio(outbound, inbound, server_side=True)
    for end in (client, server, client):
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()
    return client.getpeercert(binary_form=True)


def test_a_certificate_that_cannot_be_read_leaves_the_one_before_until_it_can(
    authority: Authority, tmp_path: Path
) -> None:
    first, second, path = authority.issue("first"), authority.issue("second"), tmp_path / "shown.pem"
    shutil.copy(first, path)
    own = node_properties({"listener.security.protocol.map": "KAFKA:SSL", "ssl.keystore.location": str(path)})
    context = server_context(own)
    assert context is not None
    tls = ListenerTls(context, own)
    before, contents = shown_by(tls.context()), second.read_text()
    assert before is not None
    path.write_text(contents[: contents.index("-----BEGIN PRIVATE")])
    os.utime(path, ns=(1, 1))
    assert shown_by(tls.context()) == before
    path.write_text(contents)
    os.utime(path, ns=(1, 1))  # as fast as the clock of the file system may be slow
    assert shown_by(tls.context()) not in (None, before)


def test_a_key_that_is_encrypted_is_a_mistake_and_nobody_is_asked_for_its_password(
    authority: Authority, tmp_path: Path
) -> None:
    plain, locked = authority.issue("locked"), tmp_path / "locked.pem"
    command = ("openssl", "pkcs8", "-topk8", "-in", plain, "-out", locked, "-passout", "pass:secret")
    subprocess.run(command, check=True, capture_output=True)
    locked.write_text(locked.read_text() + plain.read_text().partition("-----BEGIN PRIVATE")[0])
    given = {"listener.security.protocol.map": "KAFKA:SSL", "ssl.keystore.location": str(locked)}
    with pytest.raises(ConfigError, match="its key is encrypted"):
        server_context(node_properties(given))


async def test_a_client_that_leaves_before_it_is_handed_over_leaves_nothing_behind(properties: NodeProperties) -> None:
    context, made, failed = server_context(properties), list[object](), list[str]()
    assert context is not None
    gate = TlsGate(context, PrincipalRules(""), lambda: made.append(1), lambda *reason: failed.append(str(reason)))  # type: ignore[arg-type, return-value]
    transport = cast(Any, SimpleNamespace(get_extra_info=lambda _: ("127.0.0.1", 1)))

    async def shake_hands(*_: object, **__: object) -> object:
        gate.connection_lost(None)
        return object()

    loop = asyncio.get_running_loop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "start_tls", shake_hands)
        await gate._open(transport)
    assert (made, failed) == ([], [])


def test_a_subject_is_written_as_rfc_2253_does() -> None:
    subject = ((("countryName", "DE"),), (("organizationName", "Example, Inc"),), (("commonName", "alice"),))
    assert subject_of({"subject": subject}) == "CN=alice,O=Example\\, Inc,C=DE"
    short = ((("domainComponent", "org"),), (("streetAddress", "Main 1"),), (("userId", "al"),))
    assert subject_of({"subject": short}) == "UID=al,STREET=Main 1,DC=org"


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("DEFAULT", "User:CN=Alice,O=example"),
        (" ", "User:CN=Alice,O=example"),
        (r"RULE:^CN=(.*?),(X)?.*$/$2\\d$1/", r"User:\\dAlice"),
        ("RULE:^CN=(.*?),O=example$/$1/,DEFAULT", "User:Alice"),
        ("RULE:^CN=(.*?),O=example$/$1@example/L", "User:alice@example"),
        ("RULE:^CN=(.*?),O=other$/$1/,RULE:^CN=(.*?),.*$/$1/U", "User:ALICE"),
    ],
)
def test_the_first_rule_that_fits_names_the_principal(rules: str, principal: str) -> None:
    assert PrincipalRules(rules).principal("CN=Alice,O=example") == principal


def test_without_a_rule_that_fits_there_is_no_principal() -> None:
    with pytest.raises(ValueError, match="no rule"):
        PrincipalRules("RULE:^CN=bob$/bob/").principal("CN=alice")


@pytest.mark.parametrize("text", ["RULE:nothing", "RULE:CN=(/$1/", "RULE:CN=(.*)/$2/", "RULE:*/a/"])
def test_rules_that_are_none_are_a_mistake_of_the_user(text: str) -> None:
    with pytest.raises(ConfigError, match="mapping"):
        PrincipalRules(text)

"""Clients of Kafka with names, passwords and permissions: librdkafka and aiokafka against one cluster."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from aiokafka.errors import TopicAuthorizationFailedError
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from laststand.emulator.cluster.kafka_probe import KafkaProbeConnection
from laststand.emulator.core.properties import STANDARD_AUTHORIZER
from laststand.emulator.kafka.connection import Login, connected
from laststand.standing_cluster import StandingCluster
from tests.certificates import Authority
from tests.cluster.settings import PATIENT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

SETTINGS = {
    **PATIENT,
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin;User:client;User:broker-0;User:broker-1;User:broker-2",
    "listener.security.protocol.map": "KAFKA:SASL_PLAINTEXT",
    "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_admin="admin-secret" user_alice="alice-secret";',
}
TIMEOUT_S = 20


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandingCluster]:
    with StandingCluster(store=tmp_path_factory.mktemp("store"), kafka=True, settings=SETTINGS) as found:
        found.create_topic("orders", partitions=1, replication_factor=3)
        found.create_topic("refunds", partitions=1, replication_factor=3)
        yield found


def as_user(
    cluster: StandingCluster, user: str, mechanism: str = "PLAIN", password: str | None = None
) -> dict[str, object]:
    return {
        "bootstrap.servers": cluster.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password or f"{user}-secret",
        "log_level": 0,
    }


def allow(cluster: StandingCluster, operation: AclOperation, topic: str) -> AclBinding:
    binding = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    admin = AdminClient(as_user(cluster, "admin"))
    (created,) = admin.create_acls([binding]).values()
    created.result(TIMEOUT_S)
    return binding


def produced(settings: Mapping[str, object], topic: str) -> KafkaError | None:
    """Returns the error of a record that somebody produces."""
    errors: list[KafkaError | None] = []
    producer = Producer({**settings, "message.timeout.ms": 10_000, "enable.idempotence": False})
    producer.produce(topic, b"record", on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT_S)
    return errors[0]


def await_answer(settings: Mapping[str, object], topic: str, code: int | None) -> None:
    """Produces until that is the answer: brokers learn of a list after the controller has acknowledged it."""
    deadline = time.monotonic() + TIMEOUT_S
    while (None if (error := produced(settings, topic)) is None else error.code()) != code:
        assert time.monotonic() < deadline, error


async def send(
    cluster: StandingCluster, topic: str, *, user: str, mechanism: str = "PLAIN", password: str | None = None
) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=password or f"{user}-secret",
    )
    try:
        await producer.start()
        await producer.send_and_wait(topic, b"record")
    finally:
        await producer.stop()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_proves_who_it_is_by_each_mechanism(cluster: StandingCluster, mechanism: str) -> None:
    assert produced(as_user(cluster, "admin", mechanism), "orders") is None
    asyncio.run(send(cluster, "orders", user="admin", mechanism=mechanism))


@pytest.mark.parametrize(
    ("mechanism", "reason"), [("PLAIN", "Invalid username or password"), ("SCRAM-SHA-512", "invalid credentials")]
)
def test_a_wrong_password_is_refused_once_with_the_reason(
    cluster: StandingCluster, mechanism: str, reason: str
) -> None:
    errors: list[KafkaError] = []
    client = AdminClient({**as_user(cluster, "alice", mechanism, "guessed"), "error_cb": errors.append})
    deadline = time.monotonic() + TIMEOUT_S
    while not errors and time.monotonic() < deadline:
        client.poll(0.1)
    with pytest.raises(KafkaException):
        client.list_topics(timeout=0.1)
    assert any(error.code() == KafkaError._AUTHENTICATION and reason in error.str() for error in errors)
    with pytest.raises(AioKafkaError):
        asyncio.run(send(cluster, "orders", user="alice", mechanism=mechanism, password="guessed"))


async def test_our_own_connections_of_kafkas_protocol_log_in_or_are_refused(cluster: StandingCluster) -> None:
    address = cluster.bootstrap_servers.split(",")[0]
    async with connected(address, Login("alice", "alice-secret")) as connection:
        assert connection.is_open
    with pytest.raises(ConnectionError, match="refuses the login: sasl_authentication_failed"):
        async with connected(address, Login("alice", "guessed")):
            pass
    async with KafkaProbeConnection(address) as connection:  # a probe needs none
        assert await connection.round_trip() > 0


def test_permissions_are_those_of_the_lists(cluster: StandingCluster) -> None:
    alice = as_user(cluster, "alice")
    assert "orders" not in AdminClient(alice).list_topics(timeout=TIMEOUT_S).topics
    await_answer(alice, "orders", KafkaError.TOPIC_AUTHORIZATION_FAILED)
    binding = allow(cluster, AclOperation.WRITE, "orders")
    await_answer(alice, "orders", None)
    reader, deadline = AdminClient(alice), time.monotonic() + TIMEOUT_S
    while (seen := set(reader.list_topics(timeout=TIMEOUT_S).topics) & {"orders", "refunds"}) != {"orders"}:
        assert time.monotonic() < deadline, seen
    with pytest.raises(TopicAuthorizationFailedError):
        asyncio.run(send(cluster, "refunds", user="alice"))
    admin = AdminClient(as_user(cluster, "admin"))
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert admin.describe_acls(everything).result(TIMEOUT_S) == [binding]
    (removed,) = admin.delete_acls([everything]).values()
    assert removed.result(TIMEOUT_S) == [binding]
    await_answer(alice, "orders", KafkaError.TOPIC_AUTHORIZATION_FAILED)


def test_a_group_is_for_those_who_may_read_it(cluster: StandingCluster) -> None:
    allow(cluster, AclOperation.READ, "orders")
    consumer = Consumer({**as_user(cluster, "alice"), "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    # A broker that has not learned of the list yet refuses the topic first.
    codes, deadline = set[int](), time.monotonic() + TIMEOUT_S
    while KafkaError.GROUP_AUTHORIZATION_FAILED not in codes and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is not None
            codes.add(message.error().code())
    consumer.close()
    assert KafkaError.GROUP_AUTHORIZATION_FAILED in codes


def test_changing_lists_needs_alter_of_the_cluster(cluster: StandingCluster) -> None:
    binding = AclBinding(
        ResourceType.TOPIC,
        "refunds",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )
    alice = AdminClient(as_user(cluster, "alice"))
    (created,) = alice.create_acls([binding]).values()
    with pytest.raises(KafkaException) as refused:
        created.result(TIMEOUT_S)
    assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def test_a_certificate_is_a_principal_and_clients_without_one_are_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    alice = str(authority.issue("alice"))
    settings = {
        **SETTINGS,
        "listener.security.protocol.map": "KAFKA:SSL",
        "super.users": "User:alice;User:client;User:broker-0;User:broker-1;User:broker-2",
        "ssl.keystore.location": str(authority.issue("broker")),
        "ssl.truststore.location": str(authority.certificate),
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/,DEFAULT",
    }
    with StandingCluster(store=tmp_path / "store", kafka=True, settings=settings) as guarded:
        guarded.create_topic("orders", partitions=1, replication_factor=3)
        ssl_settings = {
            "bootstrap.servers": guarded.bootstrap_servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.certificate),
            "ssl.certificate.location": alice,
            "ssl.key.location": alice,
            "log_level": 0,
        }
        assert produced(ssl_settings, "orders") is None
        asyncio.run(send_by_tls(guarded.bootstrap_servers, authority, alice))
        with pytest.raises(AioKafkaError):
            asyncio.run(send_by_tls(guarded.bootstrap_servers, authority, None))


async def send_by_tls(servers: str, authority: Authority, certificate: str | None) -> None:
    context = create_ssl_context(cafile=str(authority.certificate), certfile=certificate, keyfile=certificate)
    producer = AIOKafkaProducer(bootstrap_servers=servers, security_protocol="SSL", ssl_context=context)
    try:
        await producer.start()
        await producer.send_and_wait("orders", b"record")
    finally:
        await producer.stop()

"""Administrators' requests: answers that no recorded case has."""

import asyncio
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, cast

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.acls import AclOperation
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import ConfigResource, TopicId
from laststand.emulator.kafka_listener.administration import ADMINISTRATION
from laststand.emulator.kafka_listener.message_codec import ZERO_UUID
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Served

T = TopicId("T" * 21 + "A")
CLIENT = Requester("User:alice")


class Broker:
    """A broker that knows topic ``t``, and whose controller does what it is asked.

    Args:
        error: of the controller, in place of that.
        unallowed: operations that the broker's entries do not allow to the client.
    """

    def __init__(self, error: ErrorCode = ErrorCode.NONE, unallowed: Collection[AclOperation] = ()) -> None:
        self.error = error
        self.image = MetadataImage()
        self.image.topics["t"] = T
        self.image.topic_names[T] = "t"
        self.asked: list[messages.Request] = []
        self.served = cast(
            Served,
            SimpleNamespace(
                broker=SimpleNamespace(image=self.image),
                controller=self,
                controller_id=100,
                note=lambda *_, **__: None,
                might=lambda _, operation, __: operation not in unallowed,
                properties=NodeProperties(),
            ),
        )

    async def ask(
        self, _: int, request: messages.Request, *, timeout_ms: int, on_behalf_of: object
    ) -> messages.Response:
        assert timeout_ms > 0
        assert on_behalf_of == CLIENT
        self.asked.append(request)
        match request:
            case admin_messages.DeleteTopicsRequest(topics=topics):
                deleted = tuple(admin_messages.TopicResult(name=name, error=self.error) for name in topics)
                return admin_messages.DeleteTopicsResponse(topics=deleted)
            case admin_messages.ElectLeadersRequest():
                return admin_messages.ElectLeadersResponse(error=self.error)
            case admin_messages.CreateTopicsRequest(topics=topics):
                made = tuple(admin_messages.TopicResult(name=topic.name, error=ErrorCode.NONE) for topic in topics)
                return admin_messages.CreateTopicsResponse(topics=made)
            case admin_messages.DescribeConfigsRequest(resources=(resource,)):
                config = admin_messages.DescribedConfig(
                    name="retention.ms",
                    value="1000",
                    source=admin_messages.ConfigSource.DYNAMIC_TOPIC_CONFIG,
                    read_only=False,
                    synonyms=(),
                )
                found = admin_messages.DescribedConfigResource(
                    resource=ConfigResource.TOPIC,
                    resource_name=resource.resource_name,
                    error=ErrorCode.NONE,
                    configs=(config,),
                )
                return admin_messages.DescribeConfigsResponse(resources=(found,))
            case _:
                raise AssertionError(f"{request} was not to be asked")

    def answer(self, api: str, version: int, **body: object) -> Message:
        key = api_named(api).key
        request = ClientRequest(key, version, body, cast(Any, SimpleNamespace(requester=CLIENT)))
        answer = asyncio.run(cast(Any, ADMINISTRATION[key](self.served, request)))
        return cast(Message, answer)


def test_a_topic_that_is_named_and_given_by_its_id_is_not_deleted() -> None:
    broker = Broker()
    topics = [{"name": "t", "topicId": ZERO_UUID}, {"name": None, "topicId": T}]
    answer = broker.answer("DeleteTopics", 6, topics=topics, topicNames=[], timeoutMs=1000)
    assert [(each["name"], each["topicId"], each["errorCode"]) for each in answer["responses"]] == [
        ("t", T, ErrorCode.INVALID_REQUEST)
    ]
    assert broker.asked == []


def test_a_topic_that_is_denied_is_shown_as_it_was_given() -> None:
    topics = [{"name": "t", "topicId": ZERO_UUID}, {"name": None, "topicId": T}]
    denied, delete = ErrorCode.TOPIC_AUTHORIZATION_FAILED, AclOperation.DELETE
    body = {"topicNames": [], "timeoutMs": 1000, "topics": topics}
    for unallowed, name in (({delete}, "t"), ({delete, AclOperation.DESCRIBE}, None)):
        answer = Broker(denied, unallowed).answer("DeleteTopics", 6, **body)
        shown = [(each["name"], each["topicId"], each["errorCode"]) for each in answer["responses"]]
        assert shown == [("t", ZERO_UUID, denied), (name, T, denied)]


def test_a_refused_election_lists_the_partitions_of_the_request() -> None:
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    named = [{"topic": "t", "partitions": [3]}]
    for asked, shown in ((None, []), (named, [("t", 3, denied)])):
        answer = Broker(denied).answer("ElectLeaders", 2, electionType=0, topicPartitions=asked, timeoutMs=1000)
        assert answer["errorCode"] == denied
        assert [
            (topic["topic"], each["partitionId"], each["errorCode"])
            for topic in answer["replicaElectionResults"]
            for each in topic["partitionResult"]
        ] == shown


def test_a_topic_is_created_without_showing_a_configuration_that_may_not_be_described() -> None:
    topic = {"name": "new", "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    for is_rehearsed in (False, True):
        broker = Broker(unallowed={AclOperation.DESCRIBE_CONFIGS})
        body = {"topics": [topic], "timeoutMs": 1000, "validateOnly": is_rehearsed}
        (created,) = broker.answer("CreateTopics", 7, **body)["topics"]
        assert (created["errorCode"], created["topicConfigErrorCode"]) == (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert (created["numPartitions"], created["replicationFactor"]) == (-1, -1)
        assert "configs" not in created
        assert len(broker.asked) == 1


def test_the_creator_of_a_topic_gets_its_configuration() -> None:
    topic = {"name": "new", "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    body = {"topics": [topic], "timeoutMs": 1000}
    created = Broker().answer("CreateTopics", 7, validateOnly=False, **body)
    assert [(each["name"], each["value"]) for each in created["topics"][0]["configs"]] == [("retention.ms", "1000")]
    for version, is_rehearsed in ((4, False), (7, True)):
        answer = Broker().answer("CreateTopics", version, validateOnly=is_rehearsed, **body)
        assert "configs" not in answer["topics"][0]


def test_a_feature_is_not_updated_in_a_way_that_there_is_not() -> None:
    broker = Broker()
    update = {"feature": "metadata.version", "maxVersionLevel": 30, "allowDowngrade": False, "upgradeType": 9}
    answer = broker.answer("UpdateFeatures", 2, featureUpdates=[update], timeoutMs=1000, validateOnly=True)
    assert answer["errorCode"] == ErrorCode.INVALID_UPDATE_VERSION
    assert broker.asked == []

"""An administrator's actions as requests: how many there are, and how their answers read."""

from laststand.emulator.core.admin_messages import ElectLeadersRequest, RequestedElection
from laststand.emulator.core.controller.elect_leaders import ELECT_LIMIT
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import TopicId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.requests import described_answers, requests_of


def test_an_election_of_more_partitions_than_a_request_is_served_has_several_requests() -> None:
    partitions = tuple(TopicPartition("many", number) for number in range(2 * ELECT_LIMIT + 1))
    action = actions.ElectLeaders(election=RequestedElection.PREFERRED, partitions=partitions, leader=None)
    requests = requests_of(action, MetadataImage(), topic_id=TopicId("id"))
    asked = [request.partitions or () for request in requests if isinstance(request, ElectLeadersRequest)]
    assert [len(each) for each in asked] == [ELECT_LIMIT, ELECT_LIMIT, 1]
    assert [TopicPartition(each.topic, each.partition) for part in asked for each in part] == list(partitions)


def test_equal_answers_are_counted() -> None:
    answers = [(ErrorCode.NONE, ""), (ErrorCode.ELECTION_NOT_NEEDED, ""), (ErrorCode.NONE, ""), (ErrorCode.NONE, "so")]
    assert described_answers(answers) == "2 x NONE, ELECTION_NOT_NEEDED, NONE (so)"

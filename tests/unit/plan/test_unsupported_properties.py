"""Properties by which several controllers could never elect one."""

import pytest

from laststand.emulator.plan.unsupported_properties import voters_refusal

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
ALL = "User:controller-100;User:controller-101;User:controller-102"


@pytest.mark.parametrize(
    ("properties", "controllers"),
    [
        ({}, 3),
        (AUTHORIZER, 1),
        ({**AUTHORIZER, "super.users": ALL}, 3),
        ({**AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}, 3),
    ],
)
def test_controllers_may_vote(properties: dict[str, str], controllers: int) -> None:
    assert voters_refusal(properties, controllers) is None


def test_controllers_that_could_get_no_vote_are_named() -> None:
    found = voters_refusal({**AUTHORIZER, "super.users": "User:controller-101"}, 3)
    assert found == "super.users lacks User:controller-100, User:controller-102: they could not vote for each other"

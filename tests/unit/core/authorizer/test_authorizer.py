"""The authorizer's decision, rule by rule (Kafka's ``StandardAuthorizerTest``)."""

import pytest

from laststand.emulator.core.acl_store import AclStore
from laststand.emulator.core.acls import (
    CLUSTER,
    CLUSTER_NAME,
    OPERATIONS,
    AccessControlEntry,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    Resource,
    ResourceType,
    entry_problem,
    matching_filter,
)
from laststand.emulator.core.authorizer.authorizer import Authorizer, authorizer_of
from laststand.emulator.core.properties import STANDARD_AUTHORIZER, NodeProperties, node_properties
from laststand.emulator.core.requester import Requester, node_principal
from laststand.emulator.core.types import NodeId

ALICE = Requester("User:alice", "10.0.0.1")
ORDERS = Resource(ResourceType.TOPIC, "orders")
DENY = AclPermission.DENY


def entry(
    operation: AclOperation,
    name: str = "orders",
    *,
    pattern: PatternType = PatternType.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    permission: AclPermission = AclPermission.ALLOW,
    resource_type: ResourceType = ResourceType.TOPIC,
) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=resource_type,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission=permission,
    )


def authorizer(*entries: AccessControlEntry, properties: NodeProperties | None = None) -> Authorizer:
    store = AclStore()
    for acl_id, each in enumerate(entries):
        store.add(acl_id, each)
    return Authorizer(properties or NodeProperties(), store)


READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
PREFIXED = PatternType.PREFIXED


@pytest.mark.parametrize(
    ("entries", "operation", "is_allowed"),
    [
        pytest.param((), READ, False, id="nothing is allowed by default"),
        pytest.param((entry(READ),), READ, True, id="an entry allows"),
        pytest.param((entry(READ),), WRITE, False, id="it allows its operation alone"),
        pytest.param((entry(ALL),), WRITE, True, id="ALL is every operation"),
        pytest.param((entry(READ, "*"),), READ, True, id="the wildcard is every name"),
        pytest.param((entry(READ, "ord", pattern=PREFIXED),), READ, True, id="a prefix"),
        pytest.param((entry(READ, "orders", pattern=PREFIXED),), READ, True, id="a name is a prefix of itself"),
        pytest.param((entry(READ, "orders-2", pattern=PREFIXED),), READ, False, id="a longer prefix"),
        pytest.param((entry(READ, "ord"),), READ, False, id="a literal name is no prefix"),
        pytest.param((entry(READ, "*", pattern=PREFIXED),), READ, False, id="a prefixed star is a star"),
        pytest.param((entry(READ, principal="User:*"),), READ, True, id="everybody"),
        pytest.param((entry(READ, principal="User:bob"),), READ, False, id="somebody else"),
        pytest.param((entry(READ, host="10.0.0.1"),), READ, True, id="from its host"),
        pytest.param((entry(READ, host="10.0.0.2"),), READ, False, id="from another host"),
        pytest.param((entry(READ), entry(READ, permission=DENY)), READ, False, id="a denial beats a permission"),
        pytest.param((entry(ALL, "*", permission=DENY), entry(READ)), READ, False, id="also one of every name"),
        pytest.param((entry(READ), entry(WRITE, permission=DENY)), READ, True, id="of another operation it does not"),
        pytest.param((entry(READ), entry(READ, host="10.0.0.2", permission=DENY)), READ, True, id="nor of a host"),
        pytest.param((entry(READ),), DESCRIBE, True, id="READ implies DESCRIBE"),
        pytest.param((entry(WRITE),), DESCRIBE, True, id="WRITE implies DESCRIBE"),
        pytest.param((entry(AclOperation.DELETE),), DESCRIBE, True, id="DELETE implies DESCRIBE"),
        pytest.param((entry(AclOperation.ALTER),), DESCRIBE, True, id="ALTER implies DESCRIBE"),
        pytest.param((entry(AclOperation.CREATE),), DESCRIBE, False, id="CREATE does not"),
        pytest.param(
            (entry(DESCRIBE), entry(READ, permission=DENY)), DESCRIBE, True, id="a denied READ denies no more"
        ),
        pytest.param(
            (entry(AclOperation.ALTER_CONFIGS),), AclOperation.DESCRIBE_CONFIGS, True, id="ALTER_CONFIGS implies"
        ),
        pytest.param((entry(READ, resource_type=ResourceType.GROUP),), READ, False, id="another type of resource"),
    ],
)
def test_of_the_entries_that_apply_a_denial_beats_a_permission(
    *, entries: tuple[AccessControlEntry, ...], operation: AclOperation, is_allowed: bool
) -> None:
    assert authorizer(*entries).is_allowed(ALICE, operation, ORDERS) is is_allowed


def test_super_users_may_do_everything() -> None:
    properties = NodeProperties(super_users="User:bob; User:alice")
    denying = authorizer(entry(ALL, permission=DENY), properties=properties)
    assert denying.is_allowed(ALICE, AclOperation.DELETE, ORDERS)
    assert not denying.is_allowed(Requester("User:carol"), READ, ORDERS)


def test_everybody_may_do_everything_to_what_has_no_entries_if_that_is_set() -> None:
    found = authorizer(
        entry(READ, principal="User:bob"), properties=NodeProperties(allow_everyone_if_no_acl_found=True)
    )
    assert found.is_allowed(ALICE, WRITE, Resource(ResourceType.TOPIC, "refunds"))
    assert not found.is_allowed(ALICE, READ, ORDERS), "an entry about somebody else is one"


def test_a_decision_is_made_again_after_a_change() -> None:
    store = AclStore()
    found = Authorizer(NodeProperties(), store)
    assert not found.is_allowed(ALICE, READ, ORDERS)
    store.add(7, entry(READ))
    assert found.is_allowed(ALICE, READ, ORDERS)
    store.remove(7)
    assert not found.is_allowed(ALICE, READ, ORDERS)


@pytest.mark.parametrize(
    ("entries", "is_allowed"),
    [
        ((), False),
        ((entry(WRITE, "refunds"),), True),
        ((entry(WRITE, "re", pattern=PREFIXED),), True),
        ((entry(READ, "refunds"),), False),
        ((entry(WRITE, "refunds"), entry(WRITE, "refunds", permission=DENY)), False),
        ((entry(WRITE, "refunds"), entry(WRITE, "re", pattern=PREFIXED, permission=DENY)), False),
        ((entry(WRITE, "re", pattern=PREFIXED), entry(WRITE, "refunds", permission=DENY)), True),
        ((entry(WRITE, "*"), entry(WRITE, "refunds", permission=DENY)), True),
        ((entry(WRITE, "refunds"), entry(ALL, "*", permission=DENY)), False),
    ],
)
def test_an_operation_on_any_resource_needs_one_that_is_not_denied(
    *, entries: tuple[AccessControlEntry, ...], is_allowed: bool
) -> None:
    assert authorizer(*entries).is_allowed_on_any(ALICE, WRITE, ResourceType.TOPIC) is is_allowed


def test_without_a_class_there_is_no_authorizer() -> None:
    assert authorizer_of(NodeProperties(), AclStore()) is None
    assert authorizer_of(node_properties({"authorizer.class.name": STANDARD_AUTHORIZER}), AclStore()) is not None


def test_a_filter_matches_by_name_by_pattern_or_what_applies_to_a_name() -> None:
    literal, prefixed, wildcard = entry(READ), entry(READ, "ord", pattern=PREFIXED), entry(READ, "*")
    everything = (literal, prefixed, wildcard, entry(READ, "refunds"))
    matched = {
        "all": AclFilter(),
        "literal": AclFilter(resource_name="orders", pattern_type=PatternType.LITERAL),
        "any": AclFilter(resource_name="ord"),
        "match": AclFilter(resource_name="orders", pattern_type=PatternType.MATCH),
        "own": matching_filter(prefixed),
        "others": AclFilter(principal="User:bob"),
    }
    found = {name: tuple(each for each in everything if asked.matches(each)) for name, asked in matched.items()}
    assert found == {
        "all": everything,
        "literal": (literal,),
        "any": (prefixed,),
        "match": (literal, prefixed, wildcard),
        "own": (prefixed,),
        "others": (),
    }


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (entry(AclOperation.ANY), "operation ANY"),
        (entry(READ, pattern=PatternType.MATCH), "patternType MATCH"),
        (entry(READ, permission=AclPermission.ANY), "permissionType ANY"),
        (entry(READ, resource_type=ResourceType.ANY), "resourceType ANY"),
        (entry(AclOperation.ALTER, "mine", resource_type=ResourceType.CLUSTER), CLUSTER_NAME),
        (entry(READ, ""), "empty"),
        (entry(READ, principal="alice"), "no colon"),
    ],
)
def test_an_entry_that_cannot_be_is_refused_with_the_reason(wrong: AccessControlEntry, reason: str) -> None:
    assert reason in (entry_problem(wrong) or "")
    assert entry_problem(entry(READ)) is None


def test_principals_of_nodes_say_what_they_are() -> None:
    names = [node_principal(NodeId(each)) for each in (1, 100, 1000, 1002)]
    assert names == ["User:broker-1", "User:controller-100", "User:client", "User:client-2"]


def test_operations_of_a_resource_are_those_that_answers_of_kafka_list() -> None:
    bits = {kind: sum(1 << each for each in operations) for kind, operations in OPERATIONS.items()}
    assert (bits[ResourceType.TOPIC], bits[ResourceType.CLUSTER], bits[ResourceType.GROUP]) == (3576, 8096, 3400)
    assert str(CLUSTER) == "CLUSTER:kafka-cluster"

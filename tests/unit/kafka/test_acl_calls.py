"""Access control lists in Kafka's protocol: entries and filters go there, outcomes and entries come back."""

from typing import cast

from kio.schema.create_acls.v3 import request as create_acls
from kio.schema.create_acls.v3 import response as acls_created
from kio.schema.delete_acls.v3 import request as delete_acls
from kio.schema.delete_acls.v3 import response as acls_deleted
from kio.schema.errors import ErrorCode as KafkaError
from kio.static.primitive import i8

from laststand.emulator.core import admin_messages
from laststand.emulator.core.acls import AccessControlEntry, AclOperation, PatternType, ResourceType, matching_filter
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.kafka.admin_calls import admin_call
from laststand.emulator.kafka.calls import to_milliseconds

ENTRY = AccessControlEntry(
    resource_type=ResourceType.TOPIC,
    resource_name="ord",
    pattern_type=PatternType.PREFIXED,
    principal="User:broker-1",
    operation=AclOperation.READ,
)


def test_an_entry_is_added_by_kafkas_numbers() -> None:
    call = admin_call(admin_messages.CreateAclsRequest(acls=(ENTRY,)))
    (sent,) = cast(create_acls.CreateAclsRequest, call.request).creations
    assert (sent.resource_type, sent.resource_pattern_type, sent.operation, sent.permission_type) == (2, 4, 3, 3)
    assert (sent.resource_name, sent.principal, sent.host) == ("ord", "User:broker-1", "*")
    answer = acls_created.CreateAclsResponse(
        throttle_time=to_milliseconds(0),
        results=(
            acls_created.AclCreationResult(
                error_code=KafkaError.cluster_authorization_failed, error_message="Request is not authorized."
            ),
        ),
    )
    refused = admin_messages.AclResult(
        error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Request is not authorized."
    )
    assert call.decode(answer) == (admin_messages.CreateAclsResponse(results=(refused,)), ())


def test_what_a_filter_removed_comes_back() -> None:
    call = admin_call(admin_messages.DeleteAclsRequest(filters=(matching_filter(ENTRY),)))
    (sent,) = cast(delete_acls.DeleteAclsRequest, call.request).filters
    assert (sent.resource_type_filter, sent.pattern_type_filter, sent.operation, sent.permission_type) == (2, 4, 3, 3)
    assert (sent.resource_name_filter, sent.principal_filter, sent.host_filter) == ("ord", "User:broker-1", "*")
    matching = acls_deleted.DeleteAclsMatchingAcl(
        error_code=KafkaError.none,
        error_message=None,
        resource_type=i8(2),
        resource_name="ord",
        pattern_type=i8(4),
        principal="User:broker-1",
        host="*",
        operation=i8(3),
        permission_type=i8(3),
    )
    answer = acls_deleted.DeleteAclsResponse(
        throttle_time=to_milliseconds(0),
        filter_results=(
            acls_deleted.DeleteAclsFilterResult(
                error_code=KafkaError.none, error_message=None, matching_acls=(matching,)
            ),
        ),
    )
    removed = admin_messages.DeletedAcls(error=ErrorCode.NONE, acls=(ENTRY,))
    assert call.decode(answer) == (admin_messages.DeleteAclsResponse(results=(removed,)), ())

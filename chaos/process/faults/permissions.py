"""Permissions of nodes: the controller adds and removes access control entries, effective where they are replayed."""

from laststand.chaos.play.waiting import StepError
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core import admin_messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.requests import permission_request


@executes(actions.Grant)
async def grant(target: ProcessTarget, action: actions.Grant[NodeId]) -> actions.Outcome:
    """Has the controller add entries.

    Raises:
        StepError: the controller refuses.
    """
    answer = await target.ask_controller(permission_request(action))
    assert isinstance(answer, admin_messages.CreateAclsResponse), "each request has its response"
    _check([(each.error, each.error_message) for each in answer.results])
    return actions.effective(f"the controller has entries for {len(answer.results)} nodes")


@executes(actions.Revoke)
async def revoke(target: ProcessTarget, action: actions.Revoke[NodeId]) -> actions.Outcome:
    """Has the controller remove entries.

    Raises:
        StepError: the controller refuses.
    """
    answer = await target.ask_controller(permission_request(action))
    assert isinstance(answer, admin_messages.DeleteAclsResponse), "each request has its response"
    _check([(each.error, each.error_message) for each in answer.results])
    count = sum(len(each.acls) for each in answer.results)
    return (
        actions.effective(f"the controller removed {count} entries") if count else actions.no_op("it has no such entry")
    )


def _check(results: list[tuple[ErrorCode, str]]) -> None:
    for error, message in results:
        if error is not ErrorCode.NONE:
            raise StepError(f"the controller answered {error.name} ({message})")

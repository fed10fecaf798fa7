"""Registering a broker process, and judging how the one before it ended.

A process names its incarnation. The same incarnation asking again is given its epoch; another one is refused while the
old one's session lives, gets the next metadata offset as its epoch, and starts fenced. Only the previous broker epoch,
read from the clean-shutdown file, proves that the log survived (KIP-966; Kafka's ``ClusterControlManager``).
"""

from enum import Enum
from typing import Final

import msgspec

from laststand.emulator.core import messages, records
from laststand.emulator.core.controller.decision import Decision, RegistrationCause
from laststand.emulator.core.controller.fencing import leave_isrs, leave_isrs_and_elrs
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import BrokerRegistration
from laststand.emulator.core.metadata_version import BROKER_FEATURES, CLEAN_SHUTDOWN_PROOF, METADATA_VERSION, level_name
from laststand.emulator.core.switches import SessionCheck, Switches
from laststand.emulator.core.types import BrokerEpoch, BrokerId, ChangeReason
from laststand.emulator.core.uuid_text import uuid_text

_PREVIOUS_EPOCH_SINCE: Final = 3

_UNSUPPORTED: Final = "the broker does not support the finalized version"

# Kafka keeps the first 100 directory ids for itself (``DirectoryId.java``).
_RESERVED_LOG_DIRS: Final = frozenset(uuid_text(number.to_bytes(16)) for number in range(100))


class Session(Enum):
    """The state of the stored registration's session: live if it was heard of within the session timeout."""

    VALID = "valid"
    NONE = "none"


class Shutdown(Enum):
    """The judged end of the incarnation before a new one: clean or unclean."""

    CLEAN = "clean"
    UNCLEAN = "unclean"


class RegistrationOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a registration, why it is refused, what it writes, and the verdict (``None`` where none was judged)."""

    error: ErrorCode
    reason: str = ""
    broker_epoch: BrokerEpoch | None = None
    shutdown: Shutdown | None = None
    decisions: tuple[Decision, ...] = ()


def judge_shutdown(
    request: messages.BrokerRegistrationRequest,
    *,
    stored_broker_epoch: BrokerEpoch | None,
    metadata_level: int,
    switches: Switches,
) -> Shutdown:
    """Returns whether a new incarnation proves that the one before it stopped in order.

    Proof is a previous broker epoch equal to the stored one; requests below version 3 cannot carry it, and an id that
    was never registered has nothing to be equal to. Below the metadata version of ELR nothing counts as proof (KIP-966,
    "Clean shutdown"). Without ``unclean_detection`` no proof is required.
    """
    if not switches.unclean_detection:
        return Shutdown.CLEAN
    if metadata_level < CLEAN_SHUTDOWN_PROOF or request.api_version < _PREVIOUS_EPOCH_SINCE:
        return Shutdown.UNCLEAN
    if stored_broker_epoch is None:
        return Shutdown.UNCLEAN
    return Shutdown.CLEAN if request.previous_broker_epoch == stored_broker_epoch else Shutdown.UNCLEAN


def shutdown_fallout(view: ClusterView, broker_id: BrokerId, shutdown: Shutdown) -> list[Decision]:
    """Returns the changes of partitions that the end of a broker's earlier incarnation causes.

    Unclean with ELR on: out of ISRs and ELRs, for its log may lack anything. Else as fencing.
    """
    if shutdown is Shutdown.UNCLEAN and view.partition_rules().elr_enabled:
        return leave_isrs_and_elrs(view, broker_id)
    return leave_isrs(view, broker_id, reason=ChangeReason.BROKER_REGISTERED)


def register_broker(
    view: ClusterView, request: messages.BrokerRegistrationRequest, *, cluster_id: str, session: Session
) -> RegistrationOutcome:
    """Decides on a registration; checks in Kafka's order, the first that fails answers."""
    stored = view.image.brokers.get(request.broker_id)
    error = _registration_error(view, request, cluster_id=cluster_id, stored=stored, session=session)
    error, reason = (error, "") if error is not ErrorCode.NONE else _feature_problem(view, request)
    if error is not ErrorCode.NONE:
        return RegistrationOutcome(error=error, reason=reason)
    if stored is not None and stored.incarnation_id == request.incarnation_id:
        return _amend(request, stored)
    return _register_incarnation(view, request, stored)


def _registration_error(
    view: ClusterView,
    request: messages.BrokerRegistrationRequest,
    *,
    cluster_id: str,
    stored: BrokerRegistration | None,
    session: Session,
) -> ErrorCode:
    if request.cluster_id != cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if stored is not None and stored.incarnation_id != request.incarnation_id:
        counts = view.switches.session_check is SessionCheck.CONTACT_TIME or not stored.fenced
        if session is Session.VALID and counts:
            return ErrorCode.DUPLICATE_BROKER_REGISTRATION
    if not _are_log_dirs_valid(view, request):
        return ErrorCode.INVALID_REGISTRATION
    return ErrorCode.NONE


def _feature_problem(view: ClusterView, request: messages.BrokerRegistrationRequest) -> tuple[ErrorCode, str]:
    """Returns the error of a broker that lacks a finalized level, and the controller's message."""
    ranges = {feature.name: feature for feature in request.features}
    for name, level in view.image.features.items():
        known = ranges.get(name)
        if level > 0 and known is not None:
            low, high = known.min_supported_version, known.max_supported_version
            if not low <= level <= high:
                wanted = f"the broker wants a version between {level_name(name, low)} and {level_name(name, high)}"
                return ErrorCode.UNSUPPORTED_VERSION, f"{_UNSUPPORTED} {level_name(name, level)} of {name}; {wanted}"
        elif level > 0 and name != METADATA_VERSION:
            return ErrorCode.UNSUPPORTED_VERSION, f"{_UNSUPPORTED} {level_name(name, level)} of {name}; it has none"
    if METADATA_VERSION not in ranges:
        return ErrorCode.INVALID_REGISTRATION, f"the broker names no versions of {METADATA_VERSION}"
    return ErrorCode.NONE, ""


def _are_log_dirs_valid(view: ClusterView, request: messages.BrokerRegistrationRequest) -> bool:
    log_dirs = set(request.log_dirs)
    if not log_dirs or len(log_dirs) < len(request.log_dirs) or log_dirs & _RESERVED_LOG_DIRS:
        return False
    others = (broker for broker in view.image.brokers.values() if broker.broker_id != request.broker_id)
    return all(log_dirs.isdisjoint(broker.log_dirs) for broker in others)


def _amend(request: messages.BrokerRegistrationRequest, stored: BrokerRegistration) -> RegistrationOutcome:
    # The answer to the first request was lost, or a directory was added: epoch, fencing and shutdown stay as they are.
    decisions: tuple[Decision, ...] = ()
    if request.log_dirs != stored.log_dirs:
        record = records.BrokerRegistrationChangeRecord(
            broker_id=stored.broker_id, broker_epoch=stored.broker_epoch, log_dirs=request.log_dirs
        )
        decisions = (Decision(record=record),)
    return RegistrationOutcome(error=ErrorCode.NONE, broker_epoch=stored.broker_epoch, decisions=decisions)


def _register_incarnation(
    view: ClusterView, request: messages.BrokerRegistrationRequest, stored: BrokerRegistration | None
) -> RegistrationOutcome:
    broker_id = request.broker_id
    broker_epoch = BrokerEpoch(view.image.next_offset)
    stored_epoch = None if stored is None else stored.broker_epoch
    shutdown = judge_shutdown(
        request,
        stored_broker_epoch=stored_epoch,
        metadata_level=view.image.feature_level(METADATA_VERSION),
        switches=view.switches,
    )
    # Partitions first, registration last: a crash in between only makes the broker register again.
    decisions = shutdown_fallout(view, broker_id, shutdown)
    record = records.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=broker_epoch,
        log_dirs=request.log_dirs,
        rack=request.rack,
        features=() if request.features == BROKER_FEATURES else request.features,
    )
    cause = RegistrationCause(
        previous_broker_epoch=request.previous_broker_epoch,
        stored_broker_epoch=stored_epoch,
        is_clean=shutdown is Shutdown.CLEAN,
    )
    decisions.append(Decision(record=record, cause=cause))
    return RegistrationOutcome(
        error=ErrorCode.NONE, broker_epoch=broker_epoch, shutdown=shutdown, decisions=tuple(decisions)
    )

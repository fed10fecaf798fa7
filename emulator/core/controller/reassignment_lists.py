"""List arithmetic of a reassignment: start, completion, cancellation (KIP-455; Kafka's ``PartitionReassignment*``).

During a reassignment ``replicas`` is the targets followed by those to be removed. It completes as part of whatever
change brings the targets into the ISR. Kafka's ``ReplicationControlManager.alterPartitionReassignments``.
"""

import msgspec

from laststand.emulator.core.controller.min_isr import MinIsr
from laststand.emulator.core.types import BrokerId


class Reassignment(msgspec.Struct, frozen=True, kw_only=True):
    """The lists with which a reassignment starts; ``adding`` and ``removing`` are ascending."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]


class CompletedReassignment(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas and ISR once those to be removed are gone, order preserved."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]


class RevertedReassignment(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas and ISR without those that were being added.

    ``is_unclean``: no ISR member is left, so the first remaining replica was put into the ISR.
    """

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    is_unclean: bool


def start_reassignment(*, current: tuple[BrokerId, ...], target: tuple[BrokerId, ...]) -> Reassignment:
    """Returns the lists that lead from the full current list to the target.

    Replicas that an earlier reassignment was still adding count as current, hence become removing.
    """
    removing = tuple(sorted(set(current) - set(target)))
    adding = tuple(sorted(set(target) - set(current)))
    return Reassignment(replicas=target + removing, adding=adding, removing=removing)


def complete_reassignment(
    *,
    replicas: tuple[BrokerId, ...],
    adding: tuple[BrokerId, ...],
    removing: tuple[BrokerId, ...],
    isr: tuple[BrokerId, ...],
    needs_all: bool,
    min_isr: MinIsr | None,
) -> CompletedReassignment | None:
    """Returns the final lists, or ``None``: not complete, or none runs.

    Those that are added must be in the ISR, which must have min ISR members (KIP-966), or every target
    (``needs_all``, KAFKA-15665). Where no min ISR is asked for (``None``), those that are added suffice if they are no
    fewer than those that leave: the ISR does not shrink (KAFKA-19975).
    """
    if not adding and not removing:
        return None
    final_replicas = tuple(broker_id for broker_id in replicas if broker_id not in removing)
    final_isr = tuple(broker_id for broker_id in isr if broker_id not in removing)
    is_smaller = min_isr is None and len(adding) < len(removing)
    # Who was being added when a newer reassignment removed it again is in both lists, and not waited for.
    needed = final_replicas if needs_all or is_smaller else set(adding) - set(removing)
    required = 1 if min_isr is None else min(min_isr.effective(final_replicas), len(final_replicas))
    if len(final_isr) < max(required, 1) or not set(needed) <= set(final_isr):
        return None
    return CompletedReassignment(replicas=final_replicas, isr=final_isr)


def revert_reassignment(
    *, replicas: tuple[BrokerId, ...], adding: tuple[BrokerId, ...], isr: tuple[BrokerId, ...]
) -> RevertedReassignment:
    """Returns the lists after a cancellation; the order from before the reassignment is not restored."""
    kept = tuple(broker_id for broker_id in replicas if broker_id not in adding)
    kept_isr = tuple(broker_id for broker_id in isr if broker_id not in adding)
    if kept_isr:
        return RevertedReassignment(replicas=kept, isr=kept_isr, is_unclean=False)
    return RevertedReassignment(replicas=kept, isr=kept[:1], is_unclean=True)

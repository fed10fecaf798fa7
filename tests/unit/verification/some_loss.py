"""A loss as a verdict has it, for tests to which it does not matter how it came about."""

from laststand.emulator.verification.facts.losses import LossClass
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.verdict.loss_report import Loss, OffsetRange, StoryKind, StoryLine


def some_loss(*, records: int = 10, story: tuple[str, ...] = ()) -> Loss:
    return Loss(
        topic="orders",
        topic_id="orders-id",
        partition=0,
        records=records,
        leader_epoch=0,
        offsets=(OffsetRange(first=0, last=records - 1),),
        acked_by=0,
        isr=(0, 1),
        acked_at=7,
        loss_class=LossClass.GONE_EVERYWHERE,
        holders=(),
        copies=(),
        first_lacking=None,
        settled_leader=2,
        settled_epoch=4,
        guarantee=Guarantee.BROKEN,
        reason="because",
        story=tuple(StoryLine(kind=StoryKind.LOST, text=text, topic="orders", partition=0) for text in story),
    )

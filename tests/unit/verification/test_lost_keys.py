"""Lost records have the names that their application gave them."""

from pathlib import Path

import msgspec

from laststand.emulator.core.history import AckedKeys
from laststand.emulator.core.types import Offset, TopicId
from laststand.emulator.verification.facts.losses import LossClass
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.verdict.loss_report import Loss, OffsetRange, StoryKind, StoryLine
from laststand.emulator.verification.verdict.lost_keys import with_keys

LOST, THERE = 1, 2
"""CRCs of batches."""

LINE = StoryLine(kind=StoryKind.LOST, text="2 records are gone.", topic="orders", partition=0)


def loss(*offsets: tuple[int, int]) -> Loss:
    return Loss(
        topic="orders",
        topic_id="id-of-orders",
        partition=0,
        records=2,
        leader_epoch=None,
        offsets=tuple(OffsetRange(first=first, last=last) for first, last in offsets),
        acked_by=1,
        isr=None,
        acked_at=None,
        loss_class=LossClass.GONE_EVERYWHERE,
        holders=(),
        copies=(),
        first_lacking=None,
        settled_leader=None,
        settled_epoch=None,
        guarantee=Guarantee.NOT_KNOWN,
        reason="nobody says",
        story=(LINE,),
    )


def write_keys(run: Path, *lines: tuple[str, int, int, int, list[str | None]]) -> None:
    (run / "history").mkdir()
    acked = [
        AckedKeys(
            topic="orders",
            topic_id=TopicId(topic_id),
            partition=partition,
            base_offset=Offset(base_offset),
            crc=crc,
            keys=tuple(keys),
        )
        for topic_id, partition, base_offset, crc, keys in lines
    ]
    (run / "history" / "kafka-1-0.keys").write_bytes(msgspec.json.Encoder().encode_lines(acked) + b'{"topic": "or')


def test_keys_are_those_of_the_offsets_that_are_lost(tmp_path: Path) -> None:
    write_keys(
        tmp_path,
        ("id-of-deleted-orders", 0, 0, LOST, ["of another topic", "of the same name"]),
        ("id-of-orders", 0, 0, LOST, ["a", "b", "c"]),
        ("id-of-orders", 1, 1, LOST, ["of another partition"]),
        ("id-of-orders", 0, 3, LOST, [None, "e"]),
        ("id-of-orders", 0, 1, THERE, ["in the place of b"]),
    )
    [named] = with_keys([loss((1, 1), (3, 4))], tmp_path, {LOST})
    assert named.keys == ("b", "e")
    assert named.story[0].text == "2 records are gone. Keys: b, e."


def test_a_story_names_the_first_of_many_keys(tmp_path: Path) -> None:
    write_keys(tmp_path, ("id-of-orders", 0, 0, LOST, [f"order-{number}" for number in range(200)]))
    [named] = with_keys([loss((0, 199))], tmp_path, {LOST})
    assert len(named.keys) == 100
    assert named.story[0].text.endswith("order-6, order-7 and 192 more.")


def test_without_keys_a_loss_stays_as_it_is(tmp_path: Path) -> None:
    assert with_keys([loss((0, 1))], tmp_path, {LOST}) == (loss((0, 1)),)

"""Names lost records by their keys, if a tap or Laststand's own listener recorded keys.

A broker may have acknowledged one offset for two records, the second after a truncation: the CRCs of the lost batches
identify the lost one.
"""

from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.history import AckedKeys
from laststand.emulator.verification.verdict.loss_report import Loss

_KEYS_MAX: Final = 100
_KEYS_IN_STORY_MAX: Final = 8
_DECODER: Final = msgspec.json.Decoder(AckedKeys)


def with_keys(losses: Sequence[Loss], run: Path, lost_crcs: Set[int]) -> tuple[Loss, ...]:
    """Returns a run's losses with the keys of their records, also in the first lines of their stories.

    Args:
        losses: of all partitions.
        run: the run directory.
        lost_crcs: of the batches that are lost.
    """
    return tuple(
        _named(loss, sorted((run / "history").glob(f"kafka-{loss.acked_by}-*.keys")), lost_crcs) for loss in losses
    )


def _named(loss: Loss, files: Sequence[Path], lost_crcs: Set[int]) -> Loss:
    keys = tuple(dict.fromkeys(key for file in files for key in _keys_of(loss, file, lost_crcs)))
    if not keys:
        return loss
    first, *others = loss.story
    more = f" and {len(keys) - _KEYS_IN_STORY_MAX} more" if len(keys) > _KEYS_IN_STORY_MAX else ""
    text = f"{first.text} Keys: {', '.join(keys[:_KEYS_IN_STORY_MAX])}{more}."
    story = (msgspec.structs.replace(first, text=text), *others)
    return msgspec.structs.replace(loss, keys=keys[:_KEYS_MAX], story=story)


def _keys_of(loss: Loss, file: Path, lost_crcs: Set[int]) -> Iterator[str]:
    place = loss.topic, loss.topic_id, loss.partition
    for line in file.read_bytes().splitlines():
        try:
            acked = _DECODER.decode(line)
        except msgspec.MsgspecError:  # the last line of a process that was killed
            return
        if (acked.topic, acked.topic_id or "", acked.partition) != place or acked.crc not in lost_crcs:
            continue
        for offset, key in enumerate(acked.keys, start=acked.base_offset):
            if key is not None and any(each.first <= offset <= each.last for each in loss.offsets):
                yield key

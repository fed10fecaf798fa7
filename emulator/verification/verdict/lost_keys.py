"""Names lost records by the keys that their application gave them, where a tap wrote them down.

A broker may have acknowledged one offset for two records, the second after a truncation: the first of them is the one
that was lost.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.history import AckedKeys
from laststand.emulator.verification.verdict.loss_report import Loss

_KEYS_MAX: Final = 100
_KEYS_IN_STORY_MAX: Final = 8
_DECODER: Final = msgspec.json.Decoder(AckedKeys)


def with_keys(losses: Sequence[Loss], run: Path) -> tuple[Loss, ...]:
    """Returns losses of a run with the keys of their records, which the first lines of their stories name, too."""
    return tuple(_named(loss, run / "keys" / f"{loss.acked_by}.jsonl") for loss in losses)


def _named(loss: Loss, file: Path) -> Loss:
    keys = tuple(dict.fromkeys(_keys_of(loss, file))) if file.exists() else ()
    if not keys:
        return loss
    first, *others = loss.story
    more = f" and {len(keys) - _KEYS_IN_STORY_MAX} more" if len(keys) > _KEYS_IN_STORY_MAX else ""
    text = f"{first.text} Keys: {', '.join(keys[:_KEYS_IN_STORY_MAX])}{more}."
    story = (msgspec.structs.replace(first, text=text), *others)
    return msgspec.structs.replace(loss, keys=keys[:_KEYS_MAX], story=story)


def _keys_of(loss: Loss, file: Path) -> Iterator[str]:
    seen: set[int] = set()
    for line in file.read_bytes().splitlines():
        try:
            acked = _DECODER.decode(line)
        except msgspec.MsgspecError:  # the last line of a tap that was killed
            return
        if (acked.topic, acked.topic_id or "", acked.partition) != (loss.topic, loss.topic_id, loss.partition):
            continue
        for offset, key in enumerate(acked.keys, start=acked.base_offset):
            if offset not in seen and any(each.first <= offset <= each.last for each in loss.offsets):
                seen.add(offset)
                if key is not None:
                    yield key

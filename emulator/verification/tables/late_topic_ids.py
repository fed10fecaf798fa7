"""Topics that got their id late, in a cluster with ZooKeeper that is upgraded from before 2.8 (KIP-516).

Who knows no id of a topic writes ``~`` and its name in the place of one. Where a name was that of one topic only, with
one id, that is the same topic; so what was written of it under its name is read as if the id had been known. Ids that
are known stay apart, whatever their names are.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.types import TopicId
from laststand.emulator.verification.tables.timeline import CollectedEvent

EventT = TypeVar("EventT", bound=events.Event)

LateTopicIds = Mapping[str, str]
"""The ids of topics by what stands for them where they are not known."""


def id_by_name(topic: str) -> str:
    """Returns a substitute for the id of a topic where none is known; no id begins so."""
    return f"~{topic}"


def find_late_topic_ids(created: Iterable[events.TopicCreated], deleted: Iterable[events.TopicDeleted]) -> LateTopicIds:
    """Returns the id of each name that only one topic ever had, and that had one."""
    ids: dict[str, set[str]] = {}
    ends: dict[str, int] = {}
    for end in deleted:
        ends[end.topic] = min(ends.get(end.topic, end.metadata_offset), end.metadata_offset)
    used_again = set()
    for each in created:
        ids.setdefault(each.topic, set()).add(each.topic_id)
        if each.topic in ends and ends[each.topic] < each.metadata_offset:
            used_again.add(each.topic)
    known = {topic: found - {id_by_name(topic)} for topic, found in ids.items() if topic not in used_again}
    return {id_by_name(topic): next(iter(found)) for topic, found in known.items() if len(found) == 1}


def with_known_id(collected: CollectedEvent[EventT], ids: LateTopicIds) -> CollectedEvent[EventT]:
    """Returns an event about a partition with the topic's id in place of what stands for it."""
    event = collected.event
    if not isinstance(event, events.PartitionEvent) or event.topic_id not in ids:
        return collected
    known = msgspec.structs.replace(event, topic_id=TopicId(ids[event.topic_id]))
    return msgspec.structs.replace(collected, event=known)

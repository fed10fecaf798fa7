"""Topics that got their id late, in a cluster with ZooKeeper that is upgraded from before 2.8 (KIP-516).

A process that does not know a topic's id writes ``~`` and the topic's name instead. If only one topic ever had the
name, and it had one id, events with the placeholder are read as if they had the id. Different ids stay different
topics, even if their names are equal.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.types import TopicId
from laststand.emulator.verification.tables.timeline import CollectedEvent

EventT = TypeVar("EventT", bound=events.Event)

LateTopicIds = Mapping[str, str]
"""Topic ids by the placeholders that stand for them."""


def id_by_name(topic: str) -> str:
    """Returns the placeholder for an unknown topic id: ``~`` and the name; no id begins with ``~``."""
    return f"~{topic}"


def find_late_topic_ids(created: Iterable[events.TopicCreated], deleted: Iterable[events.TopicDeleted]) -> LateTopicIds:
    """Returns the id by placeholder, for each name of only one topic that has an id."""
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
    """Returns an event with the topic's id in place of its placeholder."""
    event = collected.event
    if not isinstance(event, events.PartitionEvent) or event.topic_id not in ids:
        return collected
    known = msgspec.structs.replace(event, topic_id=TopicId(ids[event.topic_id]))
    return msgspec.structs.replace(collected, event=known)

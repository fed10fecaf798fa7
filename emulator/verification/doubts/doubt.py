"""The form of a doubt."""

import msgspec

from laststand.emulator.verification.rules.check import Evidence


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why a run proves nothing, with the file, node or partition that it concerns, if there is only one.

    Attributes:
        about: the kind of evidence that is incomplete; ``None`` if no single kind is concerned.
        sentence: in plain words.
        file: of evidence, relative to the run's directory.
        node: a node, or the node at one end of a link.
        incarnation: a process of that node.
        topic: name of a topic.
        partition: number of its partition.
        metadata_offset: of a metadata record.
    """

    about: Evidence | None
    sentence: str
    file: str | None = None
    node: int | None = None
    incarnation: int | None = None
    topic: str | None = None
    partition: int | None = None
    metadata_offset: int | None = None

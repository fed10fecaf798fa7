"""Decides the outcome of a power loss from durable and present content; a pure function of both file systems.

Names: every difference between the durable and the present names of a directory is an unsynced change. Changes that
share a file belong together (a rename is one change of two names, and may have replaced a third), so they are undone or
kept together: the file of a rename is never lost from both names. Shape ``none`` undoes all of them, the others draw.

Bytes: a file keeps its durable content, and of the bytes appended since

- ``none``    nothing;
- ``prefix``  a part from the front, at least one byte short;
- ``torn``    all up to somewhere within its last batch (of another file: somewhere within the tail);
- ``pages``   4 KiB pages at random, with zeros between them, at least one page short.

Bytes that were changed in place and not synced are reset by ``none``. By ``prefix`` the first of these writes stay, by
``torn`` all of them and a part of the last one, by ``pages`` some 4 KiB pages of them; each loses a byte at least.

A truncation that was not synced is undone by ``none`` and drawn by the others. Every shape takes at least a byte from
every tail that was not synced, so a fault that should take effect does.

On a disk with an ordered journal (``DiskModel``) one draw decides all names and truncations together: either the
journal was committed once more before the power went, or not.

An *exact* loss draws nothing: it has the number of surviving batches, whatever their length, and the fate of
truncations and names. Files that are no logs lose their tail.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from random import Random
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core.disk import DiskModel, ExactLoss, Keep, NamesFate, TruncationFate

PAGE_BYTES: Final = 4096


class FileView(msgspec.Struct, frozen=True, kw_only=True):
    """One file before the loss. Invariant: intact_length <= both other lengths.

    Attributes:
        length: present length.
        intact_length: this much of the present content is durable.
        durable_length: length of the durable content; larger only after a truncation that was not synced.
        overwritten: ranges (start, end) within it that were changed in place and not synced, in order of the writes.
    """

    length: int
    intact_length: int
    durable_length: int
    overwritten: tuple[tuple[int, int], ...] = ()


class VolumeView(msgspec.Struct, frozen=True, kw_only=True):
    """The volume before the loss; files and directories are numbered (inodes).

    Attributes:
        roots: data directories by path; their own names are durable.
        present: names in every directory now.
        durable: names in every directory that are durable.
        files: every file that either mentions.
    """

    roots: Mapping[str, int]
    present: Mapping[int, Mapping[str, int]]
    durable: Mapping[int, Mapping[str, int]]
    files: Mapping[int, FileView]


class ContentSource(Enum):
    """The content that a surviving file starts from."""

    PRESENT = "present"
    DURABLE = "durable"


class UndoneWrite(NamedTuple):
    """The part ``start..end`` of a write in place that is lost.

    Attributes:
        number: of the write in ``FileView.overwritten``.
        start: as in ``ByteLoss``.
        end: as in ``ByteLoss``.
    """

    number: int
    start: int
    end: int


class SurvivingContent(msgspec.Struct, frozen=True, kw_only=True):
    """A file after the loss.

    Attributes:
        source: the content that it starts from.
        length: number of bytes that are left of it.
        zeroed: ranges (start, end) that read as zeros.
        undone: writes in place that are lost, in their order.
    """

    source: ContentSource
    length: int
    zeroed: tuple[tuple[int, int], ...] = ()
    undone: tuple[UndoneWrite, ...] = ()


class NameFate(Enum):
    """The state after a power loss of a name that was not durable."""

    VANISHED = "vanished"
    CAME_BACK = "came_back"
    OTHER_FILE = "other_file"


class NameLoss(msgspec.Struct, frozen=True, kw_only=True):
    """A name that the loss changed."""

    path: str
    fate: NameFate


class ByteLoss(msgspec.Struct, frozen=True, kw_only=True):
    """A surviving file whose bytes the loss changed.

    Attributes:
        path: after the loss.
        length_before: bytes before.
        length_after: bytes after.
        synced_length: bytes that were durable.
        zeroed: ranges (start, end) that read as zeros now.
        restored: ranges (start, end) that read as before they were changed in place.
        truncation_undone: whether truncated bytes came back.
    """

    path: str
    length_before: int
    length_after: int
    synced_length: int
    zeroed: tuple[tuple[int, int], ...] = ()
    restored: tuple[tuple[int, int], ...] = ()
    truncation_undone: bool = False


class PowerLossPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The decision: names of every surviving directory, content of every surviving file, and the same in words."""

    names: Mapping[int, Mapping[str, int]]
    contents: Mapping[int, SurvivingContent]
    lost_names: tuple[NameLoss, ...]
    lost_bytes: tuple[ByteLoss, ...]


class _Change(msgspec.Struct, frozen=True, kw_only=True):
    directory: int
    name: str
    present: int | None
    durable: int | None


def plan_power_loss(
    volume: VolumeView,
    *,
    keep: Keep,
    random: Random,
    batch_starts: Callable[[int], Sequence[int]],
    disk: DiskModel = DiskModel.POSIX,
    exact: ExactLoss | None = None,
) -> PowerLossPlan:
    """Draws the outcome of a power loss. The same volume, shape and seed give the same plan.

    Args:
        volume: before the loss.
        keep: shape of the loss.
        random: the only source of chance.
        batch_starts: byte positions of the whole batches in a segment file; none for other files.
        disk: the file system by which ``volume`` determines what is durable.
        exact: the loss, if it is not random.
    """
    paths = _directory_paths(volume)
    names = {directory: dict(listing) for directory, listing in volume.present.items()}
    is_undone = _draws_undoing(keep, random, disk)
    for group in _linked_changes(volume, paths):
        if is_undone() if exact is None else exact.names is NamesFate.UNDONE:
            for change in group:
                listing = names.setdefault(change.directory, {})
                if change.durable is None:
                    del listing[change.name]
                else:
                    listing[change.name] = change.durable

    contents: dict[int, SurvivingContent] = {}
    lost_names: list[NameLoss] = []
    lost_bytes: list[ByteLoss] = []
    pending = sorted(volume.roots.items())
    reachable: dict[int, Mapping[str, int]] = {}
    while pending:
        path, directory = pending.pop(0)
        before = volume.present.get(directory, {})
        after = names.get(directory, {})
        reachable[directory] = after
        lost_names += _lost_names(path, before, after)
        for name, number in sorted(after.items()):
            child = f"{path}/{name}"
            if number not in volume.files:
                pending.append((child, number))
                continue
            view = volume.files[number]
            if exact is None:
                starts = partial(batch_starts, number)
                content = _surviving_content(view, keep=keep, random=random, is_undone=is_undone, starts=starts)
            else:
                content = _exact_content(view, keep=keep, exact=exact, starts=partial(batch_starts, number))
            undone = _undone_writes(view, content, keep=keep if exact is None else Keep.NONE, random=random)
            content = msgspec.structs.replace(content, undone=undone)
            contents[number] = content
            loss = _byte_loss(child, view, content)
            if loss is not None:
                lost_bytes.append(loss)
    return PowerLossPlan(names=reachable, contents=contents, lost_names=tuple(lost_names), lost_bytes=tuple(lost_bytes))


def _draws_undoing(keep: Keep, random: Random, disk: DiskModel) -> Callable[[], bool]:
    """Returns a function that decides for each change whether it is undone."""
    if keep is Keep.NONE:
        return lambda: True
    if disk.has_ordered_journal:
        is_undone = random.random() < 0.5
        return lambda: is_undone
    return lambda: random.random() < 0.5


def _directory_paths(volume: VolumeView) -> dict[int, str]:
    """Returns the path of each directory, or its path if its removal were undone."""
    paths: dict[int, str] = {}
    pending = [(path, number) for path, number in volume.roots.items()]
    while pending:
        path, directory = pending.pop()
        paths[directory] = path
        for listing in (volume.durable.get(directory, {}), volume.present.get(directory, {})):
            pending += [(f"{path}/{name}", number) for name, number in listing.items() if number not in volume.files]
    return paths


def _linked_changes(volume: VolumeView, paths: Mapping[int, str]) -> list[list[_Change]]:
    """Unsynced changes of names, grouped by the files that they share, in order of their paths."""
    changes: list[_Change] = []
    for directory in sorted(paths, key=lambda number: (paths[number], number)):
        present = volume.present.get(directory, {})
        durable = volume.durable.get(directory, {})
        changes += [
            _Change(directory=directory, name=name, present=present.get(name), durable=durable.get(name))
            for name in sorted(present.keys() | durable.keys())
            if present.get(name) != durable.get(name)
        ]
    groups: list[list[_Change]] = []
    group_of: dict[int, list[_Change]] = {}
    for change in changes:
        numbers = [number for number in (change.present, change.durable) if number is not None]
        group = [change]
        for joined in {id(group_of[number]): group_of[number] for number in numbers if number in group_of}.values():
            joined_at = next(at for at, known in enumerate(groups) if known is joined)
            group = groups.pop(joined_at) + group
        groups.append(group)
        for member in group:
            group_of.update({number: group for number in (member.present, member.durable) if number is not None})
    return groups


def _lost_names(path: str, before: Mapping[str, int], after: Mapping[str, int]) -> list[NameLoss]:
    losses: list[NameLoss] = []
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            losses.append(NameLoss(path=f"{path}/{name}", fate=NameFate.VANISHED))
        elif name not in before:
            losses.append(NameLoss(path=f"{path}/{name}", fate=NameFate.CAME_BACK))
        elif before[name] != after[name]:
            losses.append(NameLoss(path=f"{path}/{name}", fate=NameFate.OTHER_FILE))
    return losses


def _surviving_content(
    view: FileView, *, keep: Keep, random: Random, is_undone: Callable[[], bool], starts: Callable[[], Sequence[int]]
) -> SurvivingContent:
    if view.durable_length > view.intact_length and is_undone():
        return SurvivingContent(source=ContentSource.DURABLE, length=view.durable_length)
    synced, length = view.intact_length, view.length
    if keep is Keep.NONE or length == synced:
        return SurvivingContent(source=ContentSource.PRESENT, length=synced)
    match keep:
        case Keep.PREFIX:
            return SurvivingContent(source=ContentSource.PRESENT, length=random.randrange(synced, length))
        case Keep.TORN:
            first = max(synced, max(starts(), default=0))
            return SurvivingContent(
                source=ContentSource.PRESENT, length=random.randrange(min(first + 1, length - 1), length)
            )
        case Keep.PAGES:
            return _surviving_pages(synced, length, random=random)


def _exact_content(
    view: FileView, *, keep: Keep, exact: ExactLoss, starts: Callable[[], Sequence[int]]
) -> SurvivingContent:
    if view.durable_length > view.intact_length and exact.truncation is TruncationFate.UNDONE:
        return SurvivingContent(source=ContentSource.DURABLE, length=view.durable_length)
    synced, length = view.intact_length, view.length
    unsynced = [start for start in starts() if start >= synced] if length > synced else []
    if not unsynced:
        return SurvivingContent(source=ContentSource.PRESENT, length=synced)
    kept = min(exact.kept, len(unsynced) - 1)
    ends = [*unsynced[1:], length]
    match keep:
        case Keep.NONE:
            return SurvivingContent(source=ContentSource.PRESENT, length=synced)
        case Keep.PREFIX:
            return SurvivingContent(source=ContentSource.PRESENT, length=unsynced[kept])
        case Keep.TORN:
            return SurvivingContent(source=ContentSource.PRESENT, length=(unsynced[-1] + length) // 2)
        case Keep.PAGES:
            hole = (unsynced[kept], ends[kept])
            return SurvivingContent(source=ContentSource.PRESENT, length=length, zeroed=(hole,))


def _surviving_pages(synced: int, length: int, *, random: Random) -> SurvivingContent:
    pages = list(range(synced // PAGE_BYTES, (length - 1) // PAGE_BYTES + 1))
    kept = [random.random() < 0.5 for _ in pages]
    if all(kept):
        kept[random.randrange(len(kept))] = False
    end = synced
    holes: list[tuple[int, int]] = []
    for page, is_kept in zip(pages, kept, strict=True):
        start = max(page * PAGE_BYTES, synced)
        if is_kept:
            if end < start:
                holes.append((end, start))
            end = min((page + 1) * PAGE_BYTES, length)
    return SurvivingContent(source=ContentSource.PRESENT, length=end, zeroed=tuple(holes))


def _undone_writes(view: FileView, content: SurvivingContent, *, keep: Keep, random: Random) -> tuple[UndoneWrite, ...]:
    # What lies behind a truncation that stays was written after it.
    is_whole = content.source is ContentSource.DURABLE
    limit = view.durable_length if is_whole else min(view.intact_length, content.length)
    writes = [
        UndoneWrite(number, start, min(end, limit))
        for number, (start, end) in enumerate(view.overwritten)
        if start < limit
    ]
    if not writes:
        return ()
    match keep:
        case Keep.NONE:
            return tuple(writes)
        case Keep.PREFIX:
            return tuple(writes[random.randrange(len(writes)) :])
        case Keep.TORN:
            last = writes[-1]
            return (last._replace(start=random.randrange(last.start, last.end)),)
        case Keep.PAGES:
            return _undone_pages(writes, random=random)


def _undone_pages(writes: Sequence[UndoneWrite], *, random: Random) -> tuple[UndoneWrite, ...]:
    pages = sorted({page for write in writes for page in range(write.start // PAGE_BYTES, -(-write.end // PAGE_BYTES))})
    lost = {page for page in pages if random.random() < 0.5} or {random.choice(pages)}
    return tuple(
        write._replace(start=max(write.start, page * PAGE_BYTES), end=min(write.end, (page + 1) * PAGE_BYTES))
        for write in writes
        for page in range(write.start // PAGE_BYTES, -(-write.end // PAGE_BYTES))
        if page in lost
    )


def _byte_loss(path: str, view: FileView, content: SurvivingContent) -> ByteLoss | None:
    is_undone = content.source is ContentSource.DURABLE
    if not is_undone and content.length == view.length and not content.zeroed and not content.undone:
        return None
    return ByteLoss(
        path=path,
        length_before=view.length,
        length_after=content.length,
        synced_length=view.durable_length,
        zeroed=content.zeroed,
        restored=_joined((write.start, write.end) for write in content.undone),
        truncation_undone=is_undone,
    )


def _joined(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return tuple(joined)

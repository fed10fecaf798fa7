"""The reason of a container's end that nobody asked for."""

import pytest

from laststand.emulator.cluster.containers.container_process import explain_kill


@pytest.mark.parametrize(
    ("code", "is_reported", "memory_limit", "words"),
    [
        (137, True, 36 << 20, "the container ran out of memory"),
        (137, False, 36 << 20, "where 36 MiB of memory are not enough"),
        (137, False, 0, None),
        (1, False, 36 << 20, None),
    ],
)
def test_a_kill_is_explained_by_memory(code: int, *, is_reported: bool, memory_limit: int, words: str | None) -> None:
    explanation = explain_kill(code, is_reported=is_reported, memory_limit=memory_limit)
    assert explanation is None if words is None else words in (explanation or "")

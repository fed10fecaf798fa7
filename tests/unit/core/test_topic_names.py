"""The bounds of Kafka's ``Topic.validate``."""

import pytest

from laststand.emulator.core.topic_names import is_legal


@pytest.mark.parametrize("name", ["a", "...", ".a", "x" * 249, "A.b_c-9", "__consumer_offsets"])
def test_letters_digits_dot_underscore_and_dash_are_legal(name: str) -> None:
    assert is_legal(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "a\n", "x" * 250])
def test_no_other_name_is(name: str) -> None:
    assert not is_legal(name)

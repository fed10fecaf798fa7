"""Words that become folders: nothing is written outside of the store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laststand.emulator.plan.path_words import as_path_word, is_path_name, is_path_word

OUTSIDE = ("..", "../../x", "/abs", "a/../b", "a//b", "a/", "/", "", ".", "a/.", "a\nb", "a b", "~", "a\x00", "latest")


@pytest.mark.parametrize("name", [*OUTSIDE, "a/latest", "a" * 201, "é", "-x", ".hidden"])
def test_a_name_that_is_refused(name: str) -> None:
    assert not is_path_name(name)


@pytest.mark.parametrize("name", ["a", "cases/09b", "kip-966/last-replica-standing", "a.b_c-d", "9", "a..b"])
def test_a_name_that_is_taken(name: str) -> None:
    assert is_path_name(name)


@given(st.text(max_size=300))
def test_every_text_has_a_word(text: str) -> None:
    assert is_path_word(as_path_word(text))


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,30}", fullmatch=True).filter(lambda text: text != "latest"))
def test_a_word_stays_as_it_is(word: str) -> None:
    assert as_path_word(word) == word

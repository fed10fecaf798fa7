"""Nouns beside numbers."""

import pytest

from laststand.emulator.plan.nouns import counted, noun


@pytest.mark.parametrize(
    ("count", "singular", "form"),
    [
        (1, "process", "process"),
        (0, "process", "processes"),
        (2, "batch", "batches"),
        (1, "link", "link"),
        (3, "link", "links"),
    ],
)
def test_the_form_fits_the_number(count: int, singular: str, form: str) -> None:
    assert noun(count, singular) == form


def test_a_number_of_things() -> None:
    assert counted(1, "unsynced byte") == "1 unsynced byte"
    assert counted(0, "unsynced byte") == "0 unsynced bytes"

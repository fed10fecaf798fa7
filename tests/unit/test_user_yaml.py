"""Documents are read as PyYAML's own parser reads them, whichever parser does it."""

from collections.abc import Callable
from typing import TypeAlias

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from laststand.chaos.scenario.scenario_file import find_scenario, scenario_names
from laststand.emulator.user_yaml import compose_yaml, load_yaml

Tree: TypeAlias = "tuple[object, ...] | None"

ODD = (
    "",
    "# nothing",
    "a: 1\nb: [1, two, {c: ~}]\n",
    "a: {b:\t1}",
    "a: {b?: 1, c: [2?]}",
    "?",
    "!",
    "a: !x 1",
    "a: &b [1]\nc: *b\n",
    "a: *b",
    "a: [1",
    "a: 'b",
    ">#",
    "- |\n  x\n   y\n- >-\n  x\n\n  y\n",
    "a: \x07",
    "\ufeffa: 1",
    "a: x\u2028b: 2",
    "a: 1\n---\nb: 2\n",
    "%YAML 1.1\n---\na: 2026-01-01\n",
    "{a: yes, b: 0x1f, c: 1_000, d: 1:30, e: .5}",
    "[" * 3000,
)


def tree(node: yaml.Node | None) -> Tree:
    """Returns tags, values and lines."""
    match node:
        case None:
            return None
        case yaml.MappingNode(value=pairs):
            found: tuple[object, ...] = tuple((tree(key), tree(value)) for key, value in pairs)
        case yaml.SequenceNode(value=items):
            found = tuple(map(tree, items))
        case _:
            found = (node.value,)
    return node.tag, node.start_mark.line, found


def composed(text: str, compose: Callable[[str], yaml.Node | None]) -> object:
    """Returns what is in a document, or why it is refused, and where."""
    try:
        return tree(compose(text))
    except RecursionError:
        return RecursionError
    except yaml.MarkedYAMLError as error:
        return error.problem, error.problem_mark and error.problem_mark.line
    except yaml.YAMLError as error:
        return str(error)


def by_pyyaml(text: str) -> yaml.Node | None:
    return yaml.compose(text, Loader=yaml.SafeLoader)


@pytest.mark.parametrize("text", ODD, ids=lambda text: text[:20])
def test_an_odd_document_is_read_or_refused_in_the_same_words(text: str) -> None:
    assert composed(text, compose_yaml) == composed(text, by_pyyaml)


def test_what_comes_along_is_read_alike() -> None:
    for name in scenario_names()[::10]:
        text = find_scenario(name).read_text(encoding="utf-8")
        assert composed(text, compose_yaml) == composed(text, by_pyyaml)
        assert load_yaml(text) == yaml.safe_load(text)


@given(st.text(alphabet="[]{}:,-?&*!|>'\"%@`# \n\t01ab~<=.", max_size=12))
def test_any_text_is_read_alike(text: str) -> None:
    assert composed(text, compose_yaml) == composed(text, by_pyyaml)


@pytest.mark.parametrize("text", ["- " * 30_000, "? " * 20_000], ids=["list", "key"])
def test_deep_nesting_is_an_exception(text: str) -> None:
    with pytest.raises(RecursionError):
        compose_yaml(text)

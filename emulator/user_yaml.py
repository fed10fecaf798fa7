"""Reads a user's YAML, with libyaml's parser if PyYAML has it: several times as fast as PyYAML's own.

The two differ about tabs, ``!``, ``?`` and some characters in unusual places: documents with any of these are left to
PyYAML's own, and a document that libyaml refuses is read again for PyYAML's message. PyYAML's composer makes the nodes:
libyaml's overflows the stack for very deeply nested values instead of raising an error.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

_T = TypeVar("_T")

_READ_DIFFERENTLY: Final = re.compile(r"[^\n\w '\"#$%&()*+,\-./:;<=>@\[\\\]^`{|}~]|[|>]\S*#")


if yaml.__with_libyaml__:
    from yaml.cyaml import CParser  # type: ignore[attr-defined]

    class _Libyaml(Composer, CParser, SafeConstructor, Resolver):
        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            Composer.__init__(self)
            SafeConstructor.__init__(self)
            Resolver.__init__(self)


_Loader: TypeAlias = "yaml.SafeLoader | _Libyaml"


def compose_yaml(text: str) -> yaml.Node | None:
    """Returns the top node of a document; ``None`` if there is none.

    Raises:
        yaml.YAMLError: the text is no YAML.
        RecursionError: the document is nested too deeply.
    """
    return _read(text, lambda loader: loader.get_single_node())


def load_yaml(text: str) -> Any:
    """Returns the values of a document.

    Raises:
        yaml.YAMLError: the text is no YAML.
        RecursionError: the document is nested too deeply.
    """
    return _read(text, lambda loader: loader.get_single_data())


def _read(text: str, read: Callable[[_Loader], _T]) -> _T:
    if yaml.__with_libyaml__ and _READ_DIFFERENTLY.search(text) is None:
        with suppress(yaml.YAMLError):
            return read(_Libyaml(text))
    loader = yaml.SafeLoader(text)
    try:
        return read(loader)
    finally:
        loader.dispose()

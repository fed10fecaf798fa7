"""Words of the user that become folders and files: names of scenarios, standing clusters and consumer groups.

One rule for all of them, so that nothing is ever written outside the store.
"""

import re
from typing import Final

LATEST: Final = "latest"
"""Link to the newest run of a scenario, or of a standing cluster: no name of one."""

PATH_WORD: Final = r"[A-Za-z0-9][A-Za-z0-9._-]*"
"""The regular expression of a word."""

PATH_WORD_RULE: Final = f"letters, digits, '.', '_' and '-', a letter or digit first, and not '{LATEST}'"
"""The rule, in words."""

PATH_LENGTH_MAX: Final = 200
"""Characters of a name; a file system has room for 255 in a folder's."""

_WORD: Final = re.compile(PATH_WORD)
_OTHER: Final = re.compile(r"[^A-Za-z0-9._-]+")


def is_path_word(text: str) -> bool:
    """Returns whether a word can be the name of a folder."""
    return _WORD.fullmatch(text) is not None and text != LATEST and len(text) <= PATH_LENGTH_MAX


def is_path_name(text: str) -> bool:
    """Returns whether a name consists of such words with ``/`` between them."""
    return all(map(is_path_word, text.split("/"))) and len(text) <= PATH_LENGTH_MAX


def as_path_word(text: str) -> str:
    """Returns a word that resembles some text, such as the stem of a file's name."""
    word = _OTHER.sub("-", text).lstrip("._-")[:PATH_LENGTH_MAX]
    return word if is_path_word(word) else f"x-{word}"[:PATH_LENGTH_MAX]

"""Reads the error trace that TLC prints: the states that lead to a broken invariant, and the action before each."""

import re
from typing import Any, Final, NamedTuple

_TOKEN: Final = re.compile(r'<<|>>|\|->|:>|@@|[\[\]{}(),]|"[^"]*"|-?\d+|\w+')
_STATE: Final = re.compile(r"^State \d+: <(?P<action>\w+)[^>]*>\n(?P<variables>.*?)\n\n", re.MULTILINE | re.DOTALL)
_VARIABLE: Final = re.compile(r"^/\\ (?P<name>\w+) = (?P<value>.*?)(?=^/\\ |\Z)", re.MULTILINE | re.DOTALL)
_CONSTANTS: Final = {"TRUE": True, "FALSE": False, "None": None}


class State(NamedTuple):
    """A state of the specification.

    Attributes:
        action: that led here, by its name in the module; ``Next`` where TLC does not name it.
        variables: by name. Functions and records are dicts, sequences tuples, and sets lists of their members.
    """

    action: str
    variables: dict[str, Any]


def read_states(output: str) -> tuple[State, ...]:
    """Returns the states of the error trace in TLC's output, from the initial one on; none where it has no trace."""
    return tuple(
        State(
            state["action"],
            {
                variable["name"]: _Reader(variable["value"]).value()
                for variable in _VARIABLE.finditer(state["variables"])
            },
        )
        for state in _STATE.finditer(output)
    )


class _Reader:
    """Reads one value in TLA+'s notation, as TLC prints it."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def _token(self) -> str:
        self._next += 1
        return str(self._tokens[self._next - 1])

    def value(self) -> Any:
        """Returns the value that begins here."""
        match token := self._token():
            case "<<":
                return tuple(self._values(">>"))
            case "{":
                return self._values("}")
            case "[":
                return self._pairs("]", ",")
            case "(":
                return self._pairs(")", "@@")
            case _ if token.startswith('"'):
                return token[1:-1]
            case _ if token.lstrip("-").isdigit():
                return int(token)
            case _:
                return _CONSTANTS.get(token, token)

    def _values(self, end: str) -> list[Any]:
        values = []
        while self._tokens[self._next] != end:
            values.append(self.value())
            if self._tokens[self._next] == ",":
                self._next += 1
        self._next += 1
        return values

    def _pairs(self, end: str, separator: str) -> dict[Any, Any]:
        pairs = {}
        while True:
            name = self.value()
            self._token()
            pairs[name] = self.value()
            if self._token() == end:
                return pairs
            assert separator

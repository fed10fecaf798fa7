"""Principals of certificates, by their subjects: Kafka's ``SslPrincipalMapper``."""

import re
from typing import Final

from laststand.emulator.core.errors import ConfigError

_RULES: Final = "ssl.principal.mapping.rules"
_DEFAULT: Final = "DEFAULT"
_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")
_GROUP: Final = re.compile(r"\$(\d)")


class PrincipalRules:
    """The rules of ``ssl.principal.mapping.rules``: the first matching rule maps a subject to the principal's name.

    Args:
        text: of the property.

    Raises:
        ConfigError: the text does not consist of such rules.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[tuple[re.Pattern[str] | None, str, str]] = []
        text = text.strip() or _DEFAULT
        position = 0
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None:
                raise self._error(text, "")
            position = found.end()
            self._rules.append((self._pattern(text, found), found[3] or "", found[4] or ""))

    @staticmethod
    def _error(text: str, reason: str) -> ConfigError:
        return ConfigError(key=_RULES, value=text, expected=f"DEFAULT, RULE:PATTERN/NAME/{reason}")

    def _pattern(self, text: str, rule: re.Match[str]) -> re.Pattern[str] | None:
        """Returns the pattern of a rule; ``None`` for the rule that matches every subject."""
        if rule[1]:
            return None
        try:
            pattern = re.compile(rule[2])
        except re.error as error:
            raise self._error(text, f" ({error})") from None
        unknown = [group for group in _GROUP.findall(rule[3]) if int(group) > pattern.groups]
        if unknown:
            raise self._error(text, f" (the pattern has no group {unknown[0]})")
        return pattern

    def principal(self, subject: str) -> str:
        """Returns the principal of a subject.

        Raises:
            ValueError: no rule fits.
        """
        for pattern, name, case in self._rules:
            if pattern is None:
                return f"User:{subject}"
            found = pattern.fullmatch(subject)
            if found is not None:
                groups = (subject, *found.groups(""))
                mapped = _GROUP.sub(lambda group: groups[int(group[1])], name)  # noqa: B023  # called at once
                return f"User:{mapped.lower() if case == 'L' else mapped.upper() if case == 'U' else mapped}"
        raise ValueError(f"no rule of {_RULES} fits {subject!r}")

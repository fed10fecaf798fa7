"""Properties given as text, read into the fields of a struct: msgspec converts and checks, by the field's type.

The types below bound a number with ``msgspec.Meta``. An error's description of the expected value comes from the type,
too.
"""

from collections.abc import Mapping
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, TypeAlias, get_args, get_type_hints

import msgspec
from msgspec import inspect

from laststand.emulator.core.errors import ConfigError

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=LONG_MAX)]
Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LONG_MAX)]
Unlimited: TypeAlias = Annotated[int, msgspec.Meta(ge=-1, le=LONG_MAX)]
"""-1 stands for no limit."""


class PropertyReader:
    """Reads the properties of one struct.

    Args:
        struct: the struct with the fields.
        fields: the field of each property, by Kafka's name.
    """

    def __init__(self, struct: type[msgspec.Struct], fields: Mapping[str, str]) -> None:
        self.fields = fields
        self._struct = struct

    def read(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Returns values by field.

        Raises:
            ConfigError: unknown name, or a value that its type does not allow.
        """
        values: dict[str, Any] = {}
        for name, text in given.items():
            if name not in self.fields:
                raise ConfigError(key=name, value=None, expected="one of " + ", ".join(sorted(self.fields)))
            field = self.fields[name]
            kind = _settable_types(self._struct)[field]
            try:
                values[field] = msgspec.convert(text.strip(), kind, strict=False)
            except msgspec.ValidationError:
                raise ConfigError(key=name, value=text, expected=_expected(kind)) from None
        return values


@cache
def _settable_types(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Returns the types of fields, without ``None`` for optional ones, as no text can express ``None``."""
    return {field: _without_none(hint) for field, hint in get_type_hints(struct, include_extras=True).items()}


def allowed_values(struct: type[msgspec.Struct], field: str) -> str:
    """Describes in words the values allowed for a field's property."""
    return _expected(_settable_types(struct)[field])


def _without_none(hint: Any) -> Any:
    arguments = get_args(hint)
    if NoneType not in arguments:
        return hint
    (value,) = (argument for argument in arguments if argument is not NoneType)
    return value


def _expected(kind: Any) -> str:
    match inspect.type_info(kind):
        case inspect.IntType(ge=low, le=high) if high is None or high >= INT_MAX:
            return f"an integer from {low} on"
        case inspect.IntType(ge=low, le=high):
            return f"an integer from {low} to {high}"
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return "one of " + ", ".join(get_args(kind))
        case inspect.EnumType(cls=enum):
            return "one of " + ", ".join(member.value for member in enum)
        case _:
            return "text"


def dotted(*fields: str) -> dict[str, str]:
    """Returns fields by Kafka's names: ``min.insync.replicas`` is held by ``min_insync_replicas``."""
    return {field.replace("_", "."): field for field in fields}

"""Converts between a frozen struct of the core and the protobuf message of the same name.

``proto/write.py`` writes the messages from the structs. The translation is derived from the struct's annotations, once,
at import:

- numbers, text and flags as they are, enums by their value;
- ``X | None`` is an ``optional`` field, absent for ``None``; of a tuple, an optional message with one repeated field;
- ``tuple[X, ...]`` is a ``repeated`` field;
- a number or else a reason why there is none, ``X | SomeEnum``, is one field: the enum's values are no such numbers;
- one of several structs, ``A | B``, is a message with an ``optional`` field for each, of which one is present;
- a struct or a named tuple is a message, and so is a tuple inside a tuple: ``tuple[tuple[A, B], ...]`` is a repeated
  message whose fields are A and B in order, ``tuple[tuple[A, ...], ...]`` one whose only field is a repeated A.

A struct and a message that do not match are a ``TypeError`` at import, not a silently lost field.
"""

import types
import typing
from collections.abc import Callable, Collection
from enum import Enum, IntEnum
from typing import Final, Generic, TypeVar, cast

import msgspec
from google.protobuf import message_factory
from google.protobuf.message import DecodeError, Message

from laststand.emulator.rpc.codec_error import CodecError

StructT = TypeVar("StructT", bound=msgspec.Struct)

_Write = Callable[[object, Message], None]
_Read = Callable[[Message], object]

_SCALARS: Final = (int, str, bool, float, bytes)


class StructCodec(Generic[StructT]):
    """Converts one type of struct to one type of message and back.

    Args:
        struct: the core's type.
        message: the protobuf class.
        transport_fields: fields of the message that the struct lacks, such as ``cause_id``.
        driver_fields: fields of the struct that the message lacks; ``read`` gets their values.

    Raises:
        TypeError: the two do not have the same fields.
    """

    def __init__(
        self,
        struct: type[StructT],
        message: type[Message],
        transport_fields: Collection[str] = (),
        driver_fields: Collection[str] = (),
    ) -> None:
        fields = [field for field in msgspec.structs.fields(struct) if field.name not in driver_fields]
        wire_names = {field.name for field in message.DESCRIPTOR.fields} - set(transport_fields)
        if (names := {field.name for field in fields}) != wire_names:
            raise TypeError(f"{struct.__name__}: struct and message differ in {sorted(names ^ wire_names)}")
        self._struct = struct
        self._message = message
        self._fields = [
            (field.encode_name, *_field(field.encode_name, field.type, message, struct.__name__)) for field in fields
        ]

    def write(self, value: StructT, target: Message) -> None:
        """Sets the message's fields from the struct's."""
        for name, write, _ in self._fields:
            write(getattr(value, name), target)

    def read(self, source: Message, **driver: object) -> StructT:
        """Returns the struct of a message, with the given transport fields.

        Raises:
            CodecError: a value that is no member of its enum.
        """
        try:
            return self._struct(**driver, **{name: read(source) for name, _, read in self._fields})
        except ValueError as error:
            raise CodecError(message=self._struct.__name__, reason=str(error)) from error

    def parse(self, payload: bytes) -> Message:
        """Returns the protobuf message that bytes encode.

        Raises:
            CodecError: the bytes are no such message.
        """
        message = self._message()
        try:
            message.ParseFromString(payload)
        except DecodeError as error:
            raise CodecError(message=self._struct.__name__, reason=str(error)) from error
        return message

    def serialize(self, value: StructT, **transport: str | int) -> bytes:
        """Returns the bytes of the message that stands for a struct, with the transport fields given."""
        message = self._message(**transport)
        self.write(value, message)
        return message.SerializeToString()


def _field(name: str, annotation: object, message: type[Message], where: str) -> tuple[_Write, _Read]:
    plain = _without_new_types(annotation)
    # ``X | None`` is a ``types.UnionType``, but a ``typing.Union`` where X is a NewType.
    if typing.get_origin(plain) in (types.UnionType, typing.Union):
        members = typing.get_args(plain)
        if types.NoneType not in members:
            return _number_or_reason(name, members, where)
        (inner,) = [member for member in members if member is not types.NoneType]
        if typing.get_origin(inner) is tuple:
            return _optional(name, *_wrapped_tuple(name, typing.get_args(inner)[0], _message_of(name, message)))
        return _optional(name, *_field(name, inner, message, where))
    if typing.get_origin(plain) is tuple:
        return _repeated(name, typing.get_args(plain)[0], message)
    if isinstance(plain, type) and issubclass(plain, Enum):
        return _enum(name, plain)
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        return _nested(name, StructCodec(plain, _message_of(name, message)))
    if isinstance(plain, type) and issubclass(plain, tuple):
        return _named_tuple(name, plain, _message_of(name, message))
    if plain in _SCALARS:
        return _scalar(name)
    raise TypeError(f"{where}.{name}: no translation for {annotation}")


def _scalar(name: str) -> tuple[_Write, _Read]:
    def write(value: object, target: Message) -> None:
        setattr(target, name, value)

    def read(source: Message) -> object:
        return getattr(source, name)

    return write, read


def _enum(name: str, enum: type[Enum]) -> tuple[_Write, _Read]:
    def write(value: object, target: Message) -> None:
        assert isinstance(value, Enum)
        setattr(target, name, value.value)

    def read(source: Message) -> object:
        return enum(getattr(source, name))

    return _scalar(name)[0] if issubclass(enum, IntEnum) else write, read


def _number_or_reason(name: str, members: tuple[object, ...], where: str) -> tuple[_Write, _Read]:
    number, reason = (_without_new_types(member) for member in members)
    if number is not int or not (isinstance(reason, type) and issubclass(reason, Enum)):
        raise TypeError(f"{where}.{name}: no translation for {members}")
    reasons = {member.value: member for member in reason}

    def write(value: object, target: Message) -> None:
        setattr(target, name, value.value if isinstance(value, Enum) else value)

    def read(source: Message) -> object:
        value = getattr(source, name)
        return reasons.get(value, value)

    return write, read


def _named_tuple(name: str, kind: type[tuple[object, ...]], message: type[Message]) -> tuple[_Write, _Read]:
    write_fields, read_fields = _fields_of_tuple(kind, message)

    def write(value: object, target: Message) -> None:
        inner = getattr(target, name)
        inner.SetInParent()
        write_fields(value, inner)

    return write, lambda source: read_fields(getattr(source, name))


def _fields_of_tuple(kind: type[tuple[object, ...]], message: type[Message]) -> tuple[_Write, _Read]:
    """Returns the two conversions between a named tuple and a message."""
    hints = typing.get_type_hints(kind)
    make = cast(Callable[..., object], kind)
    if {field.name for field in message.DESCRIPTOR.fields} != hints.keys():
        raise TypeError(f"{kind.__name__}: named tuple and message {message.DESCRIPTOR.name} differ")
    fields = [(field, *_field(field, hint, message, kind.__name__)) for field, hint in hints.items()]

    def write(value: object, target: Message) -> None:
        for field, write_field, _ in fields:
            write_field(getattr(value, field), target)

    def read(source: Message) -> object:
        return make(*[read_field(source) for _, _, read_field in fields])

    return write, read


def _nested(name: str, codec: StructCodec[msgspec.Struct]) -> tuple[_Write, _Read]:
    def write(value: object, target: Message) -> None:
        assert isinstance(value, msgspec.Struct)
        inner = getattr(target, name)
        inner.SetInParent()
        codec.write(value, inner)

    def read(source: Message) -> object:
        return codec.read(getattr(source, name))

    return write, read


def _optional(name: str, write_value: _Write, read_value: _Read) -> tuple[_Write, _Read]:
    def write(value: object, target: Message) -> None:
        if value is not None:
            write_value(value, target)

    def read(source: Message) -> object:
        return read_value(source) if source.HasField(name) else None

    return write, read


def _wrapped_tuple(name: str, item: object, wrapper: type[Message]) -> tuple[_Write, _Read]:
    field_names = [field.name for field in wrapper.DESCRIPTOR.fields]
    if len(field_names) != 1:
        raise TypeError(f"{wrapper.DESCRIPTOR.name}: fields {field_names} are not the one of an optional list")
    write_items, read_items = _repeated(field_names[0], item, wrapper)

    def write(value: object, target: Message) -> None:
        inner = getattr(target, name)
        inner.SetInParent()
        write_items(value, inner)

    def read(source: Message) -> object:
        return read_items(getattr(source, name))

    return write, read


def _repeated(name: str, item: object, message: type[Message]) -> tuple[_Write, _Read]:
    plain = _without_new_types(item)
    if plain in _SCALARS:
        return _repeated_scalar(name)
    if typing.get_origin(plain) is types.UnionType:
        return _repeated_variants(name, typing.get_args(plain), _message_of(name, message))
    if typing.get_origin(plain) is tuple:
        return _repeated_tuple(name, typing.get_args(plain), _message_of(name, message))
    assert isinstance(plain, type)
    if issubclass(plain, Enum):
        return _repeated_enum(name, plain)
    write_item: _Write
    if issubclass(plain, tuple):
        write_item, read_item = _fields_of_tuple(plain, _message_of(name, message))
    else:
        struct = cast(type[msgspec.Struct], plain)
        codec: StructCodec[msgspec.Struct] = StructCodec(struct, _message_of(name, message))
        write_item, read_item = cast(_Write, codec.write), codec.read

    def write(value: object, target: Message) -> None:
        assert isinstance(value, tuple)
        items = getattr(target, name)
        for member in value:
            write_item(member, items.add())

    def read(source: Message) -> object:
        return tuple([read_item(member) for member in getattr(source, name)])

    return write, read


def _repeated_variants(
    name: str, kinds: tuple[type[msgspec.Struct], ...], message: type[Message]
) -> tuple[_Write, _Read]:
    """Returns the two conversions between a tuple of different structs and its messages."""
    field_of = dict(zip(kinds, (field.name for field in message.DESCRIPTOR.fields), strict=True))
    codecs = {kind: StructCodec(kind, _message_of(field, message)) for kind, field in field_of.items()}

    def write(value: object, target: Message) -> None:
        assert isinstance(value, tuple)
        items = getattr(target, name)
        for member in value:
            inner = getattr(items.add(), field_of[type(member)])
            inner.SetInParent()
            codecs[type(member)].write(member, inner)

    def read_one(source: Message) -> object:
        for kind, field in field_of.items():
            if source.HasField(field):
                return codecs[kind].read(getattr(source, field))
        raise CodecError(message=message.DESCRIPTOR.name, reason="none of its fields is there")

    return write, lambda source: tuple([read_one(item) for item in getattr(source, name)])


def _repeated_scalar(name: str) -> tuple[_Write, _Read]:
    def write(value: object, target: Message) -> None:
        getattr(target, name).extend(value)

    def read(source: Message) -> object:
        return tuple(getattr(source, name))

    return write, read


def _repeated_enum(name: str, enum: type[Enum]) -> tuple[_Write, _Read]:
    def write(value: object, target: Message) -> None:
        assert isinstance(value, tuple)
        getattr(target, name).extend([member.value for member in value])

    def read(source: Message) -> object:
        return tuple([enum(number) for number in getattr(source, name)])

    return write, read


def _repeated_tuple(name: str, arguments: tuple[object, ...], message: type[Message]) -> tuple[_Write, _Read]:
    field_names = [field.name for field in message.DESCRIPTOR.fields]
    is_variadic = len(arguments) == 2 and arguments[1] is Ellipsis
    if len(field_names) != (1 if is_variadic else len(arguments)):
        raise TypeError(f"{message.DESCRIPTOR.name}: fields {field_names} do not fit a tuple of {arguments}")

    def write(value: object, target: Message) -> None:
        assert isinstance(value, tuple)
        items = getattr(target, name)
        for member in value:
            if is_variadic:
                getattr(items.add(), field_names[0]).extend(member)
            else:
                items.add(**dict(zip(field_names, member, strict=True)))

    def read(source: Message) -> object:
        members = getattr(source, name)
        if is_variadic:
            return tuple([tuple(getattr(member, field_names[0])) for member in members])
        return tuple([tuple([getattr(member, field) for field in field_names]) for member in members])

    return write, read


def _message_of(name: str, message: type[Message]) -> type[Message]:
    """Returns the class of a message's message-typed field."""
    descriptor = message.DESCRIPTOR.fields_by_name[name].message_type
    if descriptor is None:
        raise TypeError(f"{message.DESCRIPTOR.name}.{name} is no message")
    return message_factory.GetMessageClass(descriptor)  # type: ignore[arg-type]  # stubs know two descriptors, code one


def _without_new_types(annotation: object) -> object:
    while isinstance(annotation, typing.NewType):
        annotation = annotation.__supertype__
    return annotation

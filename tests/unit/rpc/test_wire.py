"""Messages on the wire: written from the core's structs, with numbers that do not change."""

from hashlib import sha256

from google.protobuf.descriptor import FieldDescriptor

from laststand.emulator.rpc.generated import broker_pb2, common_pb2, control_pb2, controller_pb2, quorum_pb2
from proto.write import FOLDER, proto_files

MODULES = (broker_pb2, common_pb2, control_pb2, controller_pb2, quorum_pb2)
WIRE = "9145ca9582a77e6429574bff3b62fab93ba92b10a840de3cb9d98c6e878f5475"


def test_proto_files_are_those_that_the_structs_give() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.proto")}
    assert committed == proto_files(), "make proto writes them"


def test_fields_keep_their_numbers_and_types() -> None:
    lines = sorted(
        f"{name}.{field.name} {described(field)}"
        for module in MODULES
        for name, message in module.DESCRIPTOR.message_types_by_name.items()
        for field in message.fields
    )
    assert len(lines) == 766
    assert sha256("\n".join(lines).encode()).hexdigest() == WIRE, "see git diff proto: only new fields may be different"


def described(field: FieldDescriptor) -> str:
    kind = "" if field.message_type is None else field.message_type.name
    return f"{field.number} {field.type} {field.is_repeated} {field.has_presence} {kind}".rstrip()

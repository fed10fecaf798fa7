import pytest

from laststand.emulator.core.address import host_and_port


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("127.0.0.1:9092", ("127.0.0.1", 9092)),
        ("broker-0:1", ("broker-0", 1)),
        ("::1:9092", ("::1", 9092)),
    ],
)
def test_the_port_is_what_stands_behind_the_last_colon(address: str, parts: tuple[str, int]) -> None:
    assert host_and_port(address) == parts


@pytest.mark.parametrize("address", ["localhost", "localhost:", "localhost:http"])
def test_an_address_has_a_port(address: str) -> None:
    with pytest.raises(ValueError, match="invalid literal for int"):
        host_and_port(address)

"""The one budget that all logs of a broker share."""

from laststand.emulator.storage.batch_memory import BatchMemory, Recent


def test_the_oldest_goes_first_whichever_log_it_belongs_to() -> None:
    memory = BatchMemory(bytes_max=30)
    orders: Recent = {}
    payments: Recent = {}
    memory.add(orders, 0, bytes(10))
    memory.add(payments, 0, bytes(10))
    memory.add(payments, 1, bytes(10))
    memory.add(payments, 2, bytes(20))
    assert list(orders) == []
    assert list(payments) == [1, 2]


def test_a_batch_above_the_budget_is_not_kept() -> None:
    memory = BatchMemory(bytes_max=30)
    orders: Recent = {}
    memory.add(orders, 0, bytes(31))
    assert orders == {}


def test_what_replaced_a_truncated_batch_outlives_it() -> None:
    memory = BatchMemory(bytes_max=30)
    orders: Recent = {}
    memory.add(orders, 0, b"a" * 10)
    del orders[0]
    memory.add(orders, 0, b"b" * 10)
    memory.add(orders, 1, b"c" * 15)
    assert orders == {0: b"b" * 10, 1: b"c" * 15}

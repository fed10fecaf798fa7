"""A shop: the application under test, which knows nothing of Laststand."""

import asyncio
import os

from aiokafka import AIOKafkaProducer


async def place_orders(servers: str, orders: range) -> None:
    """Has each order stored before it places the next one."""
    shop = AIOKafkaProducer(bootstrap_servers=servers, client_id="shop", acks="all", enable_idempotence=True)
    await shop.start()
    for order in orders:
        await shop.send_and_wait("orders", b"order %d" % order, key=b"python-%d" % order)
    await shop.stop()


if __name__ == "__main__":
    asyncio.run(place_orders(os.environ["BOOTSTRAP_SERVERS"], range(100)))

"""Which images a cluster in containers is started from."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from emulator.cluster.containers.engine import connect, require_image

TOXIPROXY_PROGRAM: Final = Path("/toxiproxy")
"""The server in its image: in ours as in the official one."""

_MADE_BY: Final = "make docker-images"


@dataclass(frozen=True, kw_only=True)
class Images:
    """Names of images on this machine; nothing is ever pulled.

    Attributes:
        node: of controller and brokers.
        toxiproxy: of the proxies.
    """

    node: str
    toxiproxy: str


def chosen_images() -> Images:
    """Returns the images that the environment names (``LASTSTAND_IMAGE``, ``TOXIPROXY_IMAGE``), else our own."""
    return Images(
        node=os.environ.get("LASTSTAND_IMAGE") or "laststand:latest",
        toxiproxy=os.environ.get("TOXIPROXY_IMAGE") or "laststand-toxiproxy:latest",
    )


def require_images() -> Images:
    """Checks that an engine answers and has the images.

    Raises:
        MissingToolError: it does not.
    """
    images = chosen_images()
    client = connect()
    try:
        require_image(client, images.node, made_by=_MADE_BY)
        require_image(client, images.toxiproxy, made_by=_MADE_BY)
    finally:
        client.close()
    return images

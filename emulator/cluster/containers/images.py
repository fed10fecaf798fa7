"""The images from which a cluster in containers is started."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from laststand.emulator.cluster.containers.engine import connect, require_image

TOXIPROXY_PROGRAM: Final = Path("/toxiproxy")
"""The server in its image: in ours as in the official one."""

_MADE_BY: Final = "make docker-images"


@dataclass(frozen=True, kw_only=True)
class Images:
    """Names of images on this machine; nothing is ever pulled.

    Attributes:
        node: of controller and brokers.
        toxiproxy: of the proxies.
        analysis: with Java, of a ZooKeeper server.
    """

    node: str
    toxiproxy: str
    analysis: str


def chosen_images() -> Images:
    """Returns the images that the environment names, else Laststand's own.

    Its variables are ``LASTSTAND_IMAGE``, ``TOXIPROXY_IMAGE`` and ``LASTSTAND_ANALYSIS_IMAGE``.
    """
    return Images(
        node=os.environ.get("LASTSTAND_IMAGE") or "laststand:latest",
        toxiproxy=os.environ.get("TOXIPROXY_IMAGE") or "laststand-toxiproxy:latest",
        analysis=os.environ.get("LASTSTAND_ANALYSIS_IMAGE") or "laststand-analysis:latest",
    )


def require_images() -> Images:
    """Checks that an engine answers and has the images of nodes and proxies.

    Raises:
        MissingToolError: no engine answers, or an image is missing.
    """
    images = chosen_images()
    _require((images.node, images.toxiproxy), made_by=_MADE_BY)
    return images


def require_analysis_image() -> None:
    """Checks that an engine answers and has the image of a ZooKeeper server.

    Raises:
        MissingToolError: no engine answers, or the image is missing.
    """
    _require((chosen_images().analysis,), made_by=_MADE_BY)


def _require(images: Iterable[str], *, made_by: str) -> None:
    client = connect()
    try:
        for image in images:
            require_image(client, image, made_by=made_by)
    finally:
        client.close()

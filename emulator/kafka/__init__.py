"""Apache Kafka's own formats: metadata records, and its protocol on a socket."""

import contextlib
import sys
from typing import Final

_HYPOTHESIS: Final = "hypothesis"


def _import_kio() -> None:
    """Imports kio, if it is installed, as where Hypothesis is not.

    It would import that otherwise, which takes a quarter of a second and leaves a folder in the user's directory.
    """
    if _HYPOTHESIS in sys.modules:
        return
    sys.modules[_HYPOTHESIS] = None  # type: ignore[assignment]
    try:
        with contextlib.suppress(ModuleNotFoundError):
            import kio.static.primitive  # noqa: F401
    finally:
        del sys.modules[_HYPOTHESIS]


_import_kio()

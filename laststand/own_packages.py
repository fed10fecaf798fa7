"""Whether the packages that Laststand consists of are importable here, or folders of the user hide them."""

import importlib.util
import sys
from pathlib import Path

_NAMES = ("emulator", "chaos")


class HiddenPackageError(ImportError):
    """A package of the user has the name of one of Laststand's, and comes first on the module path."""

    def __init__(self, *, name: str, place: Path) -> None:
        super().__init__(
            f"{place} hides Laststand's own package {name!r}: start pytest as `pytest` or `python -P -m pytest`, "
            f"with --import-mode=importlib if there is a conftest.py beside it, or rename the folder",
            name=name,
        )


def check_own_packages() -> None:
    """Checks that imports of Laststand's packages reach Laststand.

    Raises:
        HiddenPackageError: a package of another place is imported instead.
    """
    own = Path(__file__).resolve().parent.parent
    for name in _NAMES:
        place = _place_of(name)
        if place is not None and place.resolve().parent != own:
            raise HiddenPackageError(name=name, place=place)


def _place_of(name: str) -> Path | None:
    """Returns the folder that an import of the package reads, or has read."""
    module = sys.modules.get(name)
    spec = importlib.util.find_spec(name) if module is None else module.__spec__
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return Path(folders[0]) if folders else None

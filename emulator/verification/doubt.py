"""What a doubt is."""

import msgspec

from emulator.verification.check import Evidence


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why a run proves nothing. ``about`` is ``None`` where no single kind of evidence is concerned."""

    about: Evidence | None
    sentence: str

"""Numbers of things, in sentences about outcomes."""


def noun(count: int, singular: str) -> str:
    """Returns the form of a regular noun that fits a number of things."""
    if count == 1:
        return singular
    return singular + ("es" if singular.endswith(("s", "ch")) else "s")


def counted(count: int, singular: str) -> str:
    """Returns a number of things, such as ``2 links``."""
    return f"{count} {noun(count, singular)}"

"""Commands of tests hear signals, however the tests themselves were started."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def default_signals() -> Iterator[None]:
    """A suite in the background, or under nohup, would hand down that Ctrl-C and a hangup are ignored."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

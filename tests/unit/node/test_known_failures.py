"""Failures to authenticate are written down once of each kind, and no more than so many kinds."""

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId
from laststand.emulator.node.known_failures import _KNOWN_MAX, KnownFailures


def failed(
    address: str, mechanism: str = "SSL", reason: str = "certificate has expired"
) -> events.AuthenticationFailed:
    return events.AuthenticationFailed(cause_id=CauseId("tls"), address=address, mechanism=mechanism, reason=reason)


def test_the_first_of_each_host_mechanism_and_reason_is_not_known() -> None:
    known = KnownFailures()
    first = [failed("127.0.0.1:1"), failed("127.0.0.2:1"), failed("127.0.0.1:1", "token"), failed("", reason="other")]
    assert [known.is_known(each) for each in first] == [False] * len(first)
    assert known.is_known(failed("127.0.0.1:2"))


def test_invented_mechanisms_fill_no_disk() -> None:
    known = KnownFailures()
    assert (
        sum(not known.is_known(failed("127.0.0.1:1", f"M{number}")) for number in range(2 * _KNOWN_MAX)) == _KNOWN_MAX
    )


def test_other_events_are_never_known() -> None:
    known = KnownFailures()
    stopped = events.NodeStopped(cause_id=CauseId("shutdown"))
    assert not known.is_known(stopped)
    assert not known.is_known(stopped)

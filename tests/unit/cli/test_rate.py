"""The progress of a transfer: a line on a terminal, nothing elsewhere."""

import pytest

from laststand.cli.output.rate import rate_line, showing_rate


def test_the_line_reports_counts_and_rates() -> None:
    assert rate_line("acknowledged", 2000, 50_000_000, 2.0) == (
        "2000 records acknowledged, 50.0 MB; 1000 records/s, 25.0 MB/s"
    )
    assert "0 records" in rate_line("read", 0, 0, 0.0)


async def test_nothing_is_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    async with showing_rate("read", lambda: (1, 1)):
        pass
    assert capsys.readouterr() == ("", "")

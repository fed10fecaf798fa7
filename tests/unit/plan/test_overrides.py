"""A name that is neither rule nor property, given to ``--set``, is answered with the nearest one."""

import pytest

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.plan.overrides import parse_overrides


@pytest.mark.parametrize(
    ("setting", "meant"),
    [
        ("min.insync.replica=1", "did you mean 'min.insync.replicas'?"),
        ("maximal_irs=on", "did you mean 'maximal_isr'?"),
        ("controller_epoch_znode=on", "a rule of docs/eras.md"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_one(setting: str, meant: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_overrides((setting,))
    assert meant in str(refused.value)
    assert len(str(refused.value)) < 250

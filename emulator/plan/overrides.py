"""``--set key=value``: a switch's name sets the switch, a Kafka property's name the property of every node."""

from dataclasses import dataclass
from typing import Final

from laststand.emulator.core.eras import ZooKeeperSwitches, is_rule, unanswered_protocol, with_rule
from laststand.emulator.core.errors import ConfigError, suggestion
from laststand.emulator.core.properties import is_node_property, node_properties, node_property_names
from laststand.emulator.core.release import check_metadata_version
from laststand.emulator.core.switches import Switches, is_switch
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """Switches and properties by name, as text."""

    switches: tuple[tuple[str, str], ...]
    properties: tuple[tuple[str, str], ...]

    def apply(self, switches: Switches) -> Switches:
        """Returns an era's switches with the overrides on top.

        Raises:
            ConfigError: the era has no such rule, or its release does not support the protocol or metadata version.
        """
        for name, text in self.switches:
            switches = with_rule(switches, name, text)
        unanswered = unanswered_protocol(switches)
        if unanswered is not None:
            raise ConfigError(key=PROPERTY, value=unanswered, expected="a version that the era's release knows")
        check_metadata_version(dict(self.properties), switches)
        return switches


NO_OVERRIDES: Final = Overrides(switches=(), properties=())


def parse_overrides(settings: tuple[str, ...]) -> Overrides:
    """Sorts and checks the values of ``--set``.

    Raises:
        ConfigError: no ``key=value``, neither switch nor property, or a value that is not allowed.
    """
    switches: dict[str, str] = {}
    properties: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or not key:
            raise ConfigError(key="--set", value=setting, expected="key=value")
        if is_rule(key):
            with_rule(Switches() if is_switch(key) else ZooKeeperSwitches(), key, value)
            switches[key] = value
        elif is_node_property(key):
            node_properties({key: value})
            properties[key] = value
        else:
            rules = {*Switches.__struct_fields__, *ZooKeeperSwitches.__struct_fields__}
            meant = suggestion(key, (*sorted(rules), *node_property_names()))
            expected = f"a rule of docs/eras.md, such as elr, or a property of docs/properties.md{meant}"
            raise ConfigError(key=key, value=None, expected=expected)
    return Overrides(switches=tuple(switches.items()), properties=tuple(properties.items()))

"""Makes the tables of ``eras.md`` and ``eras-zookeeper.md``: values by era, whose each switch is, who reads each rule.

A page is prose with places for tables: a line ``<!-- table: NAME -->``, below which the program writes the table.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.eras import era_rules, rule_texts
from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.core.switches import ERAS, Switches
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS, ZooKeeperRules

DOCS: Final = Path(__file__).parent
REPOSITORY: Final = DOCS.parent

_WITH_RULES: Final = ("core", "storage")
"""Packages of ``emulator`` in which rules are read."""


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Returns a Markdown table."""
    titles = list(header)
    lines = [titles, ["---"] * len(titles), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def eras_page() -> str:
    """Returns ``eras.md`` with its tables as they follow from ``core/switches.py``."""
    names = Switches.__struct_fields__
    sources = switch_sources()
    read_in = switch_readers()
    rows = ((f"`{name}`", *sources[name], ", ".join(f"`{path}`" for path in read_in[name])) for name in names)
    return _filled(
        "eras.md",
        {
            "values": _values("switch", ERAS, names),
            "sources": table(("switch", "whose", "source", "read in"), rows),
        },
    )


def zookeeper_eras_page() -> str:
    """Returns ``eras-zookeeper.md`` with its tables as they follow from ``core/zookeeper/rules.py``."""
    rules = ZooKeeperRules.__struct_fields__
    shared = rule_texts(ERAS["kafka-3.9"])
    eras = [_texts(era) for era in ZOOKEEPER_ERAS]
    differing = [name for name in shared if any(texts.get(name, shared[name]) != shared[name] for texts in eras)]
    read_in = readers("rules", rules)
    rows = ((f"`{name}`", ", ".join(f"`{path}`" for path in read_in[name])) for name in rules)
    return _filled(
        "eras-zookeeper.md",
        {
            "values": _values("rule", ZOOKEEPER_ERAS, (*rules, PROPERTY)),
            "switches": _values("switch", ZOOKEEPER_ERAS, differing),
            "readers": table(("rule", "read in"), rows),
        },
    )


@cache
def switch_sources() -> Mapping[str, tuple[str, str]]:
    """Returns whose each switch is and what its source says, by the second paragraph of the switch's docstring."""
    found = {}
    for name, text in (_field_docs(QuorumRules) | _field_docs(Switches)).items():
        whose, _, source = " ".join(text.partition("\n\n")[2].replace("``", "`").split()).partition(": ")
        found[name] = (whose, source[:1].upper() + source[1:])
    return found


def switch_readers() -> Mapping[str, tuple[str, ...]]:
    """Returns the modules that look up each switch; those of the quorum are looked up among ``rules``."""
    of_quorum = QuorumRules.__struct_fields__
    others = tuple(name for name in Switches.__struct_fields__ if name not in of_quorum)
    return {**readers("rules", of_quorum), **readers("switches", others)}


@cache
def readers(holder: str, names: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Returns the modules that look up each of these names on something that is called ``holder``."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for package in _WITH_RULES:
        for file in sorted((REPOSITORY / "emulator" / package).rglob("*.py")):
            for name in sorted(set(re.findall(rf"{holder}\.(\w+)", file.read_text(encoding="utf-8")))):
                if name in found:
                    found[name].append(str(file.relative_to(REPOSITORY)))
    return {name: tuple(paths) for name, paths in found.items()}


def _field_docs(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Returns what stands below each field of a struct."""
    (kind,) = ast.parse(textwrap.dedent(inspect.getsource(struct))).body
    assert isinstance(kind, ast.ClassDef)
    docs = {}
    for field, below in zip(kind.body, kind.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            docs[field.target.id] = inspect.cleandoc(ast.literal_eval(below.value))
    return docs


@cache
def _texts(era: str) -> Mapping[str, str]:
    return rule_texts(era_rules(era))


def _values(title: str, eras: Iterable[str], names: Iterable[str]) -> str:
    columns = tuple(eras)
    return table((title, *columns), ((f"`{name}`", *(_texts(era)[name] for era in columns)) for name in names))


def _filled(page: str, tables: Mapping[str, str]) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, made in tables.items():
        place = f"<!-- table: {name} -->\n"
        before, found, after = text.partition(place)
        if not found:
            raise ValueError(f"docs/{page} has no line {place.strip()}")
        rest = after.lstrip("\n")
        while rest.startswith("|"):
            rest = rest.partition("\n")[2]
        text = f"{before}{place}\n{made}\n{rest.lstrip(chr(10))}"
    return text

"""``judged.txt`` lists code of which all mutants have been judged, so that no commit is needed to tell what changed.

Each line is a digest of a file's code, without imports and docstrings, and the file's path.
"""

import ast
from collections.abc import Collection, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Self


class Judged:
    """The list of judged files.

    Args:
        path: of the list.
        digests: by file.
    """

    def __init__(self, path: Path, digests: dict[Path, str]) -> None:
        self._path = path
        self._digests = digests

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads the list; one that is not there is empty."""
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return cls(path, {Path(name): digest for digest, name in (line.split("  ") for line in lines)})

    def without(self, files: Sequence[Path]) -> list[Path]:
        """Returns the files that have other contents than those that were judged."""
        return [path for path in files if self._digests.get(path) != digest_of(path)]

    def note(self, files: Sequence[Path], *, among: Collection[Path]) -> None:
        """Writes down that these files were judged as they are; none is listed that is not among those mutated."""
        known = {path: digest for path, digest in self._digests.items() if path in among}
        digests = {**known, **{path: digest_of(path) for path in files}}
        text = "".join(f"{digest}  {path}\n" for path, digest in sorted(digests.items()))
        self._path.write_text(text, encoding="utf-8")


def digest_of(path: Path) -> str:
    """Returns the SHA-256 of a file's statements.

    Imports and docstrings have no mutants, and a name is the same whether it is imported or its module is.
    """
    tree = _WithoutText().visit(ast.parse(path.read_bytes()))
    return sha256(ast.dump(tree).encode()).hexdigest()


class _WithoutText(ast.NodeTransformer):
    """Takes imports away, and strings that are statements; what an imported name has stands for itself."""

    def __init__(self) -> None:
        self._imported: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        """Removes the statement."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Removes the statement."""
        self._imported |= {alias.name for alias in node.names}

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Replaces an attribute of an imported name by a name."""
        if isinstance(node.value, ast.Name) and node.value.id in self._imported:
            return ast.Name(id=node.attr, ctx=node.ctx)
        self.generic_visit(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        """Removes the statement if it is a constant."""
        return None if isinstance(node.value, ast.Constant) else node

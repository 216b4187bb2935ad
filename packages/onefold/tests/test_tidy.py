"""The house rules that a program can check: directions of import, sizes, leftovers, lightness."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
SOURCE = REPOSITORY / "packages/onefold/src/onefold"
MODULES = sorted(SOURCE.rglob("*.py"))
CODE = sorted(
    path
    for folder in ("packages", "examples", "benchmarks")
    for path in (REPOSITORY / folder).rglob("*.py")
)

FLOORS = [
    "receipt",
    "errors",
    "contract",
    "update",
    "policy",
    "exact",
    "ledger",
    "parts",
    "store",
    "reduction",
    "aggregate",
    "status",
    "register",
    "aggregator",
    "wire",
    "server",
    "client",
    "faults",
    "launch",
    "testing",
    "cli",
]
"""The order of dependency: a module imports only from those that stand before it."""


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def floor(module: str) -> int | None:
    """The position of a module's room; the package's own face and ``__main__`` have none."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] == "__main__":
        return None
    return FLOORS.index(parts[1])


def imports(path: Path) -> set[str]:
    """The modules of onefold that a file imports, also inside functions; not for type checking."""
    found = set()
    tree = ast.parse(path.read_text())
    skipped = {
        node
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            found |= set(names)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    known = {module_name(path) for path in MODULES}
    return {name for name in found if name in known}


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_down(path):
    """Each module imports only from rooms below its own, or from within its room."""
    own = floor(module_name(path))
    if own is None:
        return
    for imported in imports(path):
        below = floor(imported)
        assert below is None or below <= own, f"{module_name(path)} imports {imported}"


def test_there_is_no_cycle():
    """Following imports from any module never leads back to it."""
    graph = {module_name(path): imports(path) for path in MODULES}
    # A package's face only hands names on: a part that imports a sibling makes no cycle of files.
    graph = {
        name: {i for i in found if i != name and not name.startswith(f"{i}.")}
        for name, found in graph.items()
    }
    finished: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path, name))
        if name in finished:
            return
        for imported in graph[name]:
            visit(imported, (*path, name))
        finished.add(name)

    for name in graph:
        visit(name, ())


def test_importing_onefold_is_light():
    """``import onefold`` loads none of the heavy or optional libraries, nor NumPy itself."""
    heavy = ["torch", "ray", "pyarrow", "typer", "rich", "matplotlib", "numba", "numpy", "sqlite3"]
    code = f"import sys, onefold; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_every_public_name_is_there():
    """What ``dir(onefold)`` promises can be imported, and an unknown name is an AttributeError."""
    import onefold

    for name in dir(onefold):
        getattr(onefold, name)
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        _ = onefold.nothing_of_that_name
    with pytest.raises(AttributeError):
        _ = onefold.NothingOfThatName


def test_contract_is_standard_library_only():
    """The executable specification needs nothing but Python."""
    tree = ast.parse((SOURCE / "contract.py").read_text())
    roots = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert roots - {"onefold"} <= sys.stdlib_module_names


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_files_and_functions_are_small(path):
    """A file has at most 600 lines, a function at most 60."""
    text = path.read_text()
    assert len(text.splitlines()) <= 600
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= 60, f"{node.name} has {length} lines"


def test_nothing_is_left_to_do():
    """No marker of unfinished work is left in the code."""
    markers = ["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]
    for path in CODE:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not any(marker in line for marker in markers), f"{path}:{number}"


def test_ci_runs_what_the_readme_names():
    """CI calls the test command of the README, and the README names what the Makefile offers."""
    readme = (REPOSITORY / "README.md").read_text()
    assert "make test" in (REPOSITORY / ".ci/run").read_text()
    for command in ("make demo", "make test"):
        assert command in readme

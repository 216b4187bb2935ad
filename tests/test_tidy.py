"""The house rules that a program can check: directions of import, sizes, leftovers, lightness."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
CODE = sorted(
    path
    for folder in ("packages", "examples", "benchmarks", "archive", "docs", "tests")
    for path in (REPOSITORY / folder).rglob("*.py")
    if "pages" not in path.parts
)


@dataclass(frozen=True)
class Package:
    """A package and its rooms in the order of dependency: each imports only from those before."""

    name: str
    rooms: tuple[str, ...]

    @property
    def source(self) -> Path:
        return REPOSITORY / "packages" / self.name / "src" / self.name

    @property
    def modules(self) -> list[Path]:
        return sorted(self.source.rglob("*.py"))

    def name_of(self, path: Path) -> str:
        parts = path.relative_to(self.source.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def floor(self, module: str) -> int | None:
        """The position of a module's room; the package's own face and ``__main__`` have none."""
        parts = module.split(".")
        if len(parts) == 1 or parts[1] == "__main__":
            return None
        return self.rooms.index(parts[1])

    def imports(self, path: Path) -> set[str]:
        """The package's modules that a file imports, in functions too; not for type checking."""
        tree = ast.parse(path.read_text())
        skipped = {
            node
            for branch in ast.walk(tree)
            if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
            for node in ast.walk(branch)
        }
        found = {
            name for node in ast.walk(tree) if node not in skipped for name in imported_names(node)
        }
        return found & {self.name_of(module) for module in self.modules}


PACKAGES = (
    Package(
        "failuremap",
        (
            *("child", "errors", "values", "digests", "fixtures", "archive", "programs"),
            *("documents", "runner", "mutation", "verify", "trying", "bundles", "importing"),
            *("splits", "cli", "pytest_plugin"),
        ),
    ),
    Package(
        "onefold",
        (
            *("receipt", "errors", "checks", "contract", "update", "policy", "exact", "ledger"),
            *("parts", "store", "reduction", "aggregate", "status", "register", "aggregator"),
            *("wire", "tokens", "certificates", "forks", "server", "client", "faults", "launch"),
            *("testing", "simulation", "cli"),
        ),
    ),
)
MODULES = [(package, path) for package in PACKAGES for path in package.modules]


def imported_names(node: ast.AST) -> set[str]:
    """What an import statement names, as modules and as names within them."""
    if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        return {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    return set()


@pytest.mark.parametrize(("package", "path"), MODULES, ids=[p.name_of(m) for p, m in MODULES])
def test_imports_go_down(package, path):
    """Each module imports only from rooms below its own, or from within its room."""
    own = package.floor(package.name_of(path))
    if own is None:
        return
    for imported in package.imports(path):
        below = package.floor(imported)
        assert below is None or below <= own, f"{package.name_of(path)} imports {imported}"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_there_is_no_cycle(package):
    """Following imports from any module never leads back to it."""
    graph = {package.name_of(path): package.imports(path) for path in package.modules}
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


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_neither_package_imports_the_other(package):
    """onefold and failuremap know nothing of each other."""
    others = {other.name for other in PACKAGES} - {package.name}
    for path in package.modules:
        for node in ast.walk(ast.parse(path.read_text())):
            roots = {name.split(".")[0] for name in imported_names(node)}
            assert not roots & others, path


def test_importing_is_light():
    """``import onefold`` and ``import failuremap`` load no heavy or optional library."""
    heavy = [
        *("torch", "ray", "pyarrow", "typer", "rich", "matplotlib", "numba", "numpy"),
        "sqlite3",
        *("pandas", "jsonschema", "rfc8785"),
    ]
    code = f"import sys, onefold, failuremap; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_failuremap_works_without_numpy():
    """What failuremap's base install brings is enough for its commands: no NumPy, no onefold."""
    code = (
        "import sys\n"
        "for name in ('numpy', 'onefold', 'torch', 'pandas', 'hypothesis'):\n"
        "    sys.modules[name] = None\n"
        "import failuremap.cli, failuremap.trying.session, failuremap.verify.case\n"
        "import failuremap.importing.reproduce, failuremap.splits.gather, failuremap.bundles.zips\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there():
    """What ``dir(onefold)`` promises can be imported, and an unknown name is an AttributeError."""
    import onefold

    for name in dir(onefold):
        getattr(onefold, name)
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        _ = onefold.nothing_of_that_name
    with pytest.raises(AttributeError):
        _ = onefold.NothingOfThatName


STANDARD_LIBRARY_ONLY = [
    REPOSITORY / "packages/onefold/src/onefold/contract.py",
    *(REPOSITORY / "packages/failuremap/src/failuremap/child").glob("*.py"),
    *(REPOSITORY / "archive/families").rglob("*.py"),
]


@pytest.mark.parametrize(
    "path", STANDARD_LIBRARY_ONLY, ids=lambda path: str(path.relative_to(REPOSITORY))
)
def test_some_files_are_standard_library_only(path):
    """The executable specification, the child process and the archive need nothing but Python."""
    roots = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text()))
        for name in imported_names(node)
    }
    own = {"onefold"} if path.name == "contract.py" else {"failuremap"}
    assert roots - own <= sys.stdlib_module_names


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

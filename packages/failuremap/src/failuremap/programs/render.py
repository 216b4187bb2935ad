"""A case as one stand-alone program, which is what its source digest covers.

The form is that of the published cases: a header docstring, the parameters, the implementation with
``solve``, a ``check`` that keeps what it saw, the fixtures, one line of JSON, and an exit status of
0 only if every fixture passed. It runs with plain ``python3`` and nothing else.

Its ``check`` compares by ``repr``: for plain values that is type by type, and tells ``-0.0`` from
``0.0``, as the runner does.
"""

from __future__ import annotations

import ast
import textwrap

from failuremap.archive import Case
from failuremap.digests import one_final_newline, source_digest
from failuremap.programs.lines import source_lines

__all__ = ["program_digest", "render", "without_docstring"]

_CHECK = '''observations = []


def check(label, actual, expected):
    """Keep what was asked, what came and what was expected, type by type."""
    passed = repr(actual) == repr(expected)
    observations.append(
        {"check": label, "actual": actual, "expected": expected, "passed": passed}
    )'''

_END = """passed = all(observation["passed"] for observation in observations)
print(json.dumps({"observations": observations, "passed": passed}, ensure_ascii=False))
raise SystemExit(0 if passed else 1)"""

_WIDTH = 88


def render(case: Case, role: str) -> str:
    """The stand-alone program of a role: ``failure``, ``attempt-1`` and on, ``repair``."""
    source = case.implementation(role)
    assignments = "\n".join(f"{name} = {value!r}" for name, value in case.parameters.items())
    blocks = [
        _header(case, role),
        "import json",
        assignments,
        without_docstring(source),
        _CHECK,
        without_docstring(case.family.fixtures),
        _END,
    ]
    gaps = ["\n\n", "\n\n", "\n\n\n", "\n\n\n", "\n\n\n", "\n\n"]
    text = blocks[0]
    for gap, block in zip(gaps, blocks[1:], strict=True):
        text += gap + block if block else ""
    return one_final_newline(text)


def program_digest(case: Case, role: str) -> str:
    """The source digest of a role."""
    return source_digest(render(case, role))


def _header(case: Case, role: str) -> str:
    family = case.family
    about = "failure" if role == "failure" else "attempt" if role.startswith("att") else "contract"
    title = f"{case.id} / {family.title} / variant {case.variant} / {role}"
    lines = [*textwrap.wrap(title, _WIDTH - 3), "", *textwrap.wrap(family.prose[about], _WIDTH)]
    return '"""' + "\n".join(lines) + '\n"""'


def without_docstring(source: str) -> str:
    """A source without its module docstring and without blank lines at its ends."""
    tree = ast.parse(source)
    lines = source_lines(source)
    if ast.get_docstring(tree, clean=False) is not None:
        docstring = tree.body[0]
        assert docstring.end_lineno is not None
        lines = lines[docstring.end_lineno - 1 :]
        after = lines[0].encode()[docstring.end_col_offset :].decode()
        lines[0] = after.lstrip("; \t")
    return "\n".join(lines).strip("\n")

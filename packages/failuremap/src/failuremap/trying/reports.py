"""What trying came to, for machines: JUnit XML, and a pytest file that needs no failuremap."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as Xml  # only written here, never parsed

from failuremap.archive import Case
from failuremap.programs.render import without_docstring
from failuremap.trying.session import CaseTry
from failuremap.trying.target import Target

__all__ = ["junit_xml", "pytest_file"]

_GENERATED = "generated inputs"


def junit_xml(target: Target, tries: Sequence[CaseTry]) -> str:
    """One suite a case, one test a fixture, and one for the generated inputs."""
    root = Xml.Element("testsuites", name=f"failuremap try {target.name}")
    for tried in tries:
        tests: list[tuple[str, str, str]] = [
            (verdict.label, verdict.status, verdict.message) for verdict in tried.verdicts
        ]
        smallest = tried.smallest
        words = (
            f"smallest failing input {smallest.arguments!r}: {smallest.verdict.message}"
            if smallest is not None
            else ""
        )
        tests.append((_GENERATED, smallest.verdict.status if smallest else "pass", words))
        bad = [status for _, status, _ in tests if status != "pass"]
        failures = sum(status == "fail" for status in bad)
        suite = Xml.SubElement(
            root,
            "testsuite",
            name=f"{tried.case.id} {tried.case.family.title}",
            tests=str(len(tests)),
            failures=str(failures),
            errors=str(len(bad) - failures),
        )
        for name, status, message in tests:
            case = Xml.SubElement(suite, "testcase", classname=tried.case.id, name=name)
            if status != "pass":
                kind = "failure" if status == "fail" else "error"
                Xml.SubElement(case, kind, type=status, message=_printable(message))
    Xml.indent(root)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"
    )


def _printable(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(
        c if c.isprintable() or c in "\t\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def pytest_file(target: Target, cases: Sequence[Case], *, by_value: bool = False) -> str:
    """The fixtures of cases as plain pytest functions over the user's own function."""
    parts = [
        f'"""Fixtures of {", ".join(case.id for case in cases)} for {target.name}."""\n',
        f"from {target.module} import {target.attribute.split('.')[0]}\n",
        target.adapter.strip() + "\n" if target.adapter else "",
        _solve(target.attribute, adapted=target.adapter is not None),
        _PLAIN,
        _BY_VALUE if by_value else _EXACTLY,
        *(_test(case) for case in cases),
    ]
    return "\n\n".join(part for part in parts if part)


_PLAIN = '''def plain(value):
    """Arrays, series and tensors as the lists and numbers in them."""
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {plain(key): plain(item) for key, item in value.items()}
    convert = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    return convert() if convert is not None else value
'''

_EXACTLY = '''def same(actual, expected):
    """Type by type."""
    return repr(actual) == repr(expected)
'''

_BY_VALUE = '''def same(actual, expected):
    """By value: 5 and 5.0, lists and tuples."""
    if isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    return actual == expected
'''


def _solve(attribute: str, *, adapted: bool) -> str:
    call = f"adapt({attribute}, *arguments)" if adapted else f"{attribute}(*arguments)"
    return f"def solve(*arguments):\n    return plain({call})\n"


def _test(case: Case) -> str:
    """One test a case; ``check`` collects, so that all that fails is shown at once."""
    values = "".join(f"    {name} = {value!r}\n" for name, value in case.parameters.items())
    fixtures = without_docstring(case.family.fixtures).split("\n")
    body = "\n".join(f"    {line}" if line else "" for line in fixtures)
    name = case.id.lower().replace("-", "_")
    return (
        f"def test_{name}():\n{values}    failed = []\n\n"
        "    def check(label, actual, expected):\n"
        "        if not same(actual, expected):\n"
        '            failed.append(f"{label}: got {actual!r}, expected {expected!r}")\n\n'
        f"{body}\n"
        '    assert not failed, "\\n".join(failed)\n'
    )

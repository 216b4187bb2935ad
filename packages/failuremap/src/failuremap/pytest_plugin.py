"""``pytest --failuremap MODULE:FUNCTION``: the archive's cases as tests of your function.

One test for each fixture of each case that is asked for, and one for generated inputs; a failure
shows the smallest input that fails. The options mirror ``failuremap try``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from failuremap.archive import Case
    from failuremap.trying.session import CaseTry
    from failuremap.trying.target import Target


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of ``failuremap try``."""
    group = parser.getgroup("failuremap", "failure cases against your own function")
    add = group.addoption
    add("--failuremap", metavar="MODULE:FUNCTION", help="the function to try")
    add("--failuremap-family", metavar="FAMILY", help="only the cases of this family")
    add("--failuremap-case", metavar="ID", help="only this case")
    add("--failuremap-archive", metavar="DIR", help="the archive (default: found from here)")
    add("--failuremap-adapter", metavar="FILE", help="a file with adapt(function, *arguments)")
    add("--failuremap-compare", choices=["exact", "value"], default="exact", help="how to compare")


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the archive's tests to those that were collected."""
    name = config.getoption("--failuremap")
    if name:
        items.extend(_items(session, config, str(name)))
    elif any(config.getoption(f"--failuremap-{word}") for word in ("family", "case", "adapter")):
        raise pytest.UsageError("--failuremap-...: say which function with --failuremap")


def _items(session: pytest.Session, config: pytest.Config, name: str) -> Iterator[pytest.Item]:
    from failuremap.cli.choice import chosen_cases  # noqa: PLC0415
    from failuremap.errors import FailureMapError  # noqa: PLC0415 - only when asked for
    from failuremap.trying.session import check_target  # noqa: PLC0415
    from failuremap.trying.target import read_target  # noqa: PLC0415

    def option(word: str) -> str | None:
        value = config.getoption(f"--failuremap-{word}")
        return str(value) if value else None

    adapter, archive = option("adapter"), option("archive")
    try:
        target = read_target(name, adapter=Path(adapter) if adapter else None)
        cases = chosen_cases(
            Path(archive) if archive else None, family=option("family"), case=option("case")
        )
        check_target(target)
    except FailureMapError as error:
        raise pytest.UsageError(str(error)) from None
    parent = _Cases.from_parent(session, name="failuremap", nodeid="failuremap")
    for case in cases:
        tried = _Tried(case, target, by_value=option("compare") == "value")
        for label in [*(fixture.label for fixture in case.fixtures()), _Item.GENERATED]:
            item: _Item = _Item.from_parent(parent, name=f"{case.id}[{label}]")
            item.tried, item.label = tried, label
            yield item


class _Cases(pytest.Collector):
    """Where the archive's tests hang in pytest's tree."""

    def collect(self) -> list[pytest.Item]:
        """Nothing: the items are added after collection."""
        return []


class _Tried:
    """A case, tried once for all of its tests, when the first of them runs."""

    def __init__(self, case: Case, target: Target, *, by_value: bool) -> None:
        self._case, self._target, self._by_value = case, target, by_value
        self._result: CaseTry | None = None

    def result(self) -> CaseTry:
        from failuremap.trying.session import try_case  # noqa: PLC0415

        if self._result is None:
            self._result = try_case(self._case, self._target, by_value=self._by_value)
        return self._result


class _Item(pytest.Item):
    """One fixture of a case, or its generated inputs."""

    GENERATED = "generated inputs"
    tried: _Tried
    label: str

    def runtest(self) -> None:
        """Fail with the verdict's words, and with the smallest failing input where there is one."""
        from failuremap.errors import FailureMapError  # noqa: PLC0415

        try:
            result = self.tried.result()
        except FailureMapError as error:
            pytest.fail(str(error), pytrace=False)
        if self.label == self.GENERATED:
            if result.smallest is not None:
                arguments = ", ".join(map(repr, result.smallest.arguments))
                pytest.fail(
                    f"smallest failing input: solve({arguments})\n"
                    f"{result.smallest.verdict.message}",
                    pytrace=False,
                )
            return
        for verdict in result.verdicts:
            if verdict.label == self.label and verdict.status != "pass":
                pytest.fail(f"{verdict.status}: {verdict.message}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where pytest says that the test is."""
        return Path("failuremap"), None, self.name

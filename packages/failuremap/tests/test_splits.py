"""The guarantees of the splits, over synthetic archives of hundreds of families."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from failuremap.errors import FailureMapError, SplitError
from failuremap.splits import (
    CaseFacts,
    Lock,
    coincidences,
    components,
    plan,
    verify,
)

USUAL = {"train": 0.8, "validation": 0.1, "test": 0.1}
RATIOS = st.sampled_from(
    [
        USUAL,
        {"train": "0.8", "test": "0.2"},
        dict.fromkeys("abc", "1/3"),
        dict.fromkeys("abcde", 0.2),
    ]
)
SALTS = st.sampled_from(["2026-12", "", "salt and pépper"])
SEEDS = st.integers(0, 2**32 - 1)
checked = settings(
    derandomize=True,
    max_examples=8,
    deadline=None,
    database=None,
    phases=(Phase.generate,),  # a smaller seed is no simpler archive, and shrinking takes minutes
)


def synthetic(seed: int, families: int | None = None, sharing: float = 0.1) -> list[CaseFacts]:
    """An archive in a random order; a share of its families has something of another's."""
    rng = random.Random(seed)
    families = families or rng.randint(100, 250)
    cases: list[CaseFacts] = []

    def borrowed(name: str, number: int) -> str:
        """The digest or name of this family, or now and then that of any other."""
        return f"{name}-{rng.randrange(families) if rng.random() < sharing / 4 else number}"

    for number in range(families):
        groups = frozenset({borrowed("group", number)} if rng.random() < 0.8 else ())
        contract, repair = borrowed("contract", number), borrowed("repair", number)
        trees = frozenset({borrowed("tree", number), f"tree-{number}-attempt"})
        for variant in range(rng.randint(1, 5)):
            aliased = cases and rng.random() < sharing / 20
            cases.append(
                CaseFacts(
                    id=f"FA-{len(cases):05}",
                    family=f"family-{number}",
                    evaluation_groups=groups,
                    contract_digest=contract,
                    fixtures_digest=f"fixtures-{number}-{variant}",
                    implementations=trees,
                    repair_digest=repair if rng.random() < 0.9 else None,
                    aliases=frozenset({rng.choice(cases).id} if aliased else ()),
                )
            )
    rng.shuffle(cases)
    return cases


def shared(fact: CaseFacts) -> set[object]:
    return {
        ("family", fact.family),
        ("contract", fact.contract_digest),
        ("fixtures", fact.fixtures_digest),
        ("id", fact.id),
        *(("id", name) for name in fact.aliases),
        *(("group", group) for group in fact.evaluation_groups),
        *(("tree", tree) for tree in fact.implementations),
        *({("repair", fact.repair_digest)} if fact.repair_digest else ()),
    }


def relatives(facts: Iterable[CaseFacts]) -> list[set[str]]:
    """The components by walking from each case to all that share something with it."""
    keys = {fact.id: shared(fact) for fact in facts}
    sharing: dict[object, set[str]] = {}
    for case_id, found in keys.items():
        for key in found:
            sharing.setdefault(key, set()).add(case_id)
    groups: list[set[str]] = []
    left = set(keys)
    while left:
        group, edge = set(), {min(left)}
        while edge:
            group |= edge
            edge = {c for one in edge for key in keys[one] for c in sharing[key]} - group
        groups.append(group)
        left -= group
    return groups


def case(number: int, family: str | None = None, **facts: object) -> CaseFacts:
    """A case that has nothing in common with any other, but what is said."""
    own = {
        "evaluation_groups": frozenset(),
        "contract_digest": f"contract-{number}",
        "fixtures_digest": f"fixtures-{number}",
    }
    return CaseFacts(id=f"FA-{number:05}", family=family or f"family-{number}", **(own | facts))


def made(lock: Lock | None, facts: Iterable[CaseFacts], salt: str = "s") -> Lock:
    """The lock of a plan with halves; the next one if there was one."""
    return plan(facts, {"left": "1/2", "right": "1/2"}, salt=salt, lock=lock).lock


def two_apart() -> tuple[CaseFacts, CaseFacts, Lock]:
    """Two cases that are locked in different splits."""
    one, other = case(1), case(2)
    lock = made(None, [one, other])
    assert lock.cases[one.id] != lock.cases[other.id]
    return one, other, lock


# --- components


@checked
@given(seed=SEEDS)
def test_components_are_what_a_walk_reaches(seed: int) -> None:
    """Union-find finds the groups that walking from case to case finds."""
    facts = synthetic(seed, sharing=0.4)
    found = components(facts)
    assert {part.cases for part in found} == {tuple(sorted(group)) for group in relatives(facts)}
    assert [part.cases for part in found] == sorted(part.cases for part in found)


@checked
@given(seed=SEEDS)
def test_links_say_why_and_join_all(seed: int) -> None:
    """Every link is shared by the cases it names, and the links of a component connect it."""
    facts = synthetic(seed, families=100, sharing=0.4)
    keys = {fact.id: shared(fact) for fact in facts}
    for part in components(facts):
        reached = {part.cases[0]}
        for _ in part.links:
            reached |= {c for link in part.links if reached & set(link.cases) for c in link.cases}
        assert reached == set(part.cases)
        for link in part.links:
            kind = "id" if link.kind == "alias" else link.kind
            assert len(link.cases) > 1
            assert all((kind, link.value) in keys[case] for case in link.cases)


@pytest.mark.parametrize(
    "facts",
    [
        {"family": "f"},
        {"evaluation_groups": frozenset({"g"})},
        {"contract_digest": "d"},
        {"fixtures_digest": "d"},
        {"implementations": frozenset({"d"})},
        {"repair_digest": "d"},
        {"aliases": frozenset({"FA-77777"})},
    ],
    ids=lambda facts: next(iter(facts)),
)
def test_each_kind_of_link_joins(facts: dict[str, object]) -> None:
    """Any one thing in common makes two cases relatives, and nothing in common does not."""
    (part,) = components([case(1, **facts), case(2, **facts)])
    assert part.cases == ("FA-00001", "FA-00002")
    assert len(part.links) == 1
    assert len(components([case(1, **facts), case(2)])) == 2


def test_a_case_is_joined_to_what_it_supersedes() -> None:
    """An alias joins in either order of the ids."""
    for old, new in ((1, 2), (2, 1)):
        part = components([case(old), case(new, aliases=frozenset({f"FA-{old:05}"}))])
        assert len(part) == 1


def test_what_is_equal_of_different_kinds_does_not_join() -> None:
    """A contract and a repair of one digest, or a group named as a family, are no link."""
    one = case(1, contract_digest="d", evaluation_groups=frozenset({"family-2"}))
    assert len(components([one, case(2, repair_digest="d")])) == 2


def test_small_implementations_only_warn() -> None:
    """A small tree in common joins nothing; it is told once, where nothing else joins."""
    tiny = frozenset({"t"})
    facts = [case(n, family, small_implementations=tiny) for n, family in enumerate("aabc")]
    assert len(components(facts)) == 3
    (warning,) = coincidences(facts)
    assert warning.startswith("a, b, c: ")
    assert "FA-00000" in warning
    assert coincidences(facts[:2]) == []
    assert plan(facts, USUAL, salt="s").warnings == (warning,)


def test_links_do_not_tell_digests() -> None:
    """What a report says of a link names families and groups, and no digest of a held file."""
    facts = [case(n, "f", repair_digest="5ec7e7") for n in (1, 2)]
    said = [str(link) for link in components(facts)[0].links]
    assert said == ["the family 'f'", "the same repair"]


# --- plans


@checked
@given(seed=SEEDS, ratios=RATIOS, salt=SALTS)
def test_no_component_crosses_splits(seed: int, ratios: dict[str, object], salt: str) -> None:
    """Relatives, by the slow definition, are in one split; every case is; the lock verifies."""
    facts = synthetic(seed)
    made = plan(facts, ratios, salt=salt)
    groups = relatives(facts)
    for group in groups:
        assert len({made.lock.cases[case] for case in group}) == 1
    assert made.lock.cases.keys() == {fact.id for fact in facts}
    assert made.lock.quarantine == {}
    assert made.effective_n == len(groups) == sum(made.component_counts.values())
    assert verify(facts, made.lock) == []


@checked
@given(seed=SEEDS, ratios=RATIOS, salt=SALTS)
def test_order_does_not_matter(seed: int, ratios: dict[str, object], salt: str) -> None:
    """Any order of cases and of ratios gives the same bytes, and floats are the decimals shown."""
    facts = synthetic(seed)
    shuffled = random.Random(seed).sample(facts, len(facts))
    turned = {name: str(ratios[name]) for name in reversed(ratios)}
    texts = {
        plan(facts, ratios, salt=salt).lock.to_text(),
        plan(shuffled, turned, salt=salt).lock.to_text(),
        plan(iter(facts[::-1]), ratios, salt=salt).lock.to_text(),
    }
    assert len(texts) == 1


@checked
@given(seed=SEEDS, ratios=RATIOS, salt=SALTS)
def test_ratios_are_approached(seed: int, ratios: dict[str, object], salt: str) -> None:
    """No split is over its target by the largest component, nor under by it for each other."""
    facts = synthetic(seed)
    made = plan(facts, ratios, salt=salt)
    largest = max(len(group) for group in relatives(facts))
    for split, count in made.case_counts.items():
        over = count - Fraction(str(ratios[split])) * len(facts)
        assert -(len(ratios) - 1) * largest < over < largest
        assert count > 0


def test_the_largest_come_first() -> None:
    """One of six and six of one share out evenly, which they do not in any other order."""
    for ids in (range(12), range(11, -1, -1)):
        facts = [case(n, "large" if place < 6 else None) for place, n in enumerate(ids)]
        assert plan(facts, {"a": "1/2", "b": "1/2"}, salt="s").case_counts == {"a": 6, "b": 6}


def test_the_furthest_below_comes_first() -> None:
    """Missing cases decide, in number: with 0.6 and 0.4 of ten, the large go one to each."""
    facts = [case(n, "ab"[n // 3] if n < 6 else None) for n in range(10)]
    made = plan(facts, {"most": 0.6, "rest": 0.4}, salt="s")
    assert made.case_counts == {"most": 6, "rest": 4}
    assert {made.lock.cases["FA-00000"], made.lock.cases["FA-00003"]} == {"most", "rest"}


def test_the_salt_settles_ties() -> None:
    """Of two equal components either may come first, about as often, as the salt has it."""
    facts = [case(1), case(2)]
    firsts = Counter(made(None, facts, salt=str(salt)).cases["FA-00001"] for salt in range(200))
    assert firsts.keys() == {"left", "right"}
    assert min(firsts.values()) > 70
    # The first goes where more is missing, the second to the split that would stay empty.
    larger = [plan(facts, {"l": 0.9, "r": 0.1}, salt=str(salt)).lock for salt in range(200)]
    assert 70 < sum(lock.cases["FA-00001"] == "l" for lock in larger) < 130


def test_the_salt_settles_ties_of_splits() -> None:
    """The largest goes to either of two halves, about as often, whatever their names."""
    facts = [case(1, "large"), case(2, "large"), case(3), case(4)]
    locks = [made(None, facts, salt=str(salt)) for salt in range(200)]
    assert 70 < sum(lock.cases["FA-00001"] == "left" for lock in locks) < 130


def test_no_split_stays_empty() -> None:
    """With as many components as splits each gets one, however small its share."""
    facts = [case(n, f"f{n // 5}") for n in range(15)]
    made = plan(facts, {"train": 0.98, "validation": 0.01, "test": 0.01}, salt="s")
    assert made.component_counts == {"test": 1, "train": 1, "validation": 1}


@checked
@given(count=st.integers(0, 6), splits=st.integers(1, 6), salt=SALTS)
def test_fewer_components_than_splits_are_refused(count: int, splits: int, salt: str) -> None:
    """However many cases there are: what counts is components, and the message says how many."""
    facts = [case(n, f"family-{n % count}") for n in range(count * 5)] if count else []
    ratios = {f"split-{n}": Fraction(1, splits) for n in range(splits)}
    if count >= splits:
        assert plan(facts, ratios, salt=salt).effective_n == count
    else:
        with pytest.raises(SplitError, match=f"at least {splits} components .* got {count} ") as e:
            plan(facts, ratios, salt=salt)
        assert isinstance(e.value, FailureMapError)


def test_an_id_is_there_once() -> None:
    """Two cases of one id are refused, and so are facts that would link all that lack them."""
    with pytest.raises(SplitError, match="FA-00001: expected one case"):
        plan([case(1), case(1, "other")], USUAL, salt="s")
    for empty in ({"contract_digest": ""}, {"repair_digest": ""}, {"aliases": frozenset({""})}):
        with pytest.raises(SplitError, match="not empty"):
            case(1, **empty)


# --- growth


@checked
@given(seed=SEEDS, ratios=RATIOS, data=st.data())
def test_growth_never_moves_a_case(
    seed: int, ratios: dict[str, object], data: st.DataObject
) -> None:
    """Over three releases of an archive that grows anyhow, places stand and nothing leaks.

    The archive is cut at random, so later cases join, bridge, or stand apart: a newcomer whose
    relatives are locked in one split joins it, one whose relatives are in two is quarantined, and
    nobody else is.
    """
    facts = synthetic(seed, sharing=0.3)
    cuts = data.draw(st.lists(st.integers(60, len(facts)), min_size=2, max_size=2).map(sorted))
    lock = None
    for cut in [*cuts, len(facts)]:
        before = {} if lock is None else dict(lock.cases)
        grown = plan(facts[:cut], ratios, salt="s", lock=lock).lock
        assert {case: grown.cases.get(case) for case in before} == before
        expected = set()
        for group in relatives(facts[:cut]):
            held = {before[case] for case in group if case in before}
            newcomers = group - before.keys()
            if len(held) > 1:
                expected |= newcomers
            elif held:
                assert {grown.cases[case] for case in newcomers} <= held
        assert grown.quarantine.keys() == expected
        placed = [fact for fact in facts[:cut] if fact.id in grown.cases]
        assert len(placed) + len(expected) == cut
        assert all(len({grown.cases[case] for case in group}) == 1 for group in relatives(placed))
        assert verify(facts[:cut], grown, earlier=lock) == []
        lock = grown


@checked
@given(seed=SEEDS, ratios=RATIOS, data=st.data())
def test_planning_again_changes_nothing(
    seed: int, ratios: dict[str, object], data: st.DataObject
) -> None:
    """A plan from its own lock is byte for byte that lock, in any order, bridges and all."""
    facts = synthetic(seed, sharing=0.3)
    rng = random.Random(seed)
    facts = [replace(fact, withdrawn=rng.random() < 0.1) for fact in facts]
    cut = data.draw(st.integers(60, len(facts)))
    first = plan(facts[:cut], ratios, salt="s").lock
    second = plan(facts, ratios, salt="s", lock=first).lock
    third = plan(facts[::-1], ratios, salt="s", lock=second).lock
    assert third.to_text() == second.to_text()
    assert verify(facts, second, earlier=first) == []


@checked
@given(seed=SEEDS, ratios=RATIOS, data=st.data())
def test_the_withdrawn_keep_their_place(
    seed: int, ratios: dict[str, object], data: st.DataObject
) -> None:
    """Withdrawing any cases changes not one byte of the lock, nor where later relatives go."""
    facts = synthetic(seed)
    cut = data.draw(st.integers(60, len(facts)))
    lock = plan(facts[:cut], ratios, salt="s").lock
    rng = random.Random(seed)
    gone = [replace(fact, withdrawn=rng.random() < 0.5) for fact in facts[:cut]]
    assert plan(gone, ratios, salt="s", lock=lock).lock.to_text() == lock.to_text()
    assert verify(gone, lock) == []
    with_gone = plan([*gone, *facts[cut:]], ratios, salt="s", lock=lock).lock
    assert with_gone == plan(facts, ratios, salt="s", lock=lock).lock


@checked
@given(seed=SEEDS, data=st.data())
def test_a_bridge_is_quarantined(seed: int, data: st.DataObject) -> None:
    """A newcomer made a relative of any two cases in different splits is put aside, and only it."""
    facts = synthetic(seed)
    lock = plan(facts, USUAL, salt="s").lock
    one = data.draw(st.sampled_from(facts))
    other = data.draw(st.sampled_from([f for f in facts if lock.cases[f.id] != lock.cases[one.id]]))
    bridge = case(90001, one.family, contract_digest=other.contract_digest)
    follower = case(90002, evaluation_groups=frozenset({"late"}))
    leader = replace(bridge, evaluation_groups=frozenset({"late"}))
    free = case(90003)
    alone = plan([*facts, bridge], USUAL, salt="s", lock=lock).lock
    grown = plan([*facts, leader, follower, free], USUAL, salt="s", lock=lock).lock
    assert alone.cases == lock.cases
    assert alone.quarantine.keys() == {bridge.id}
    assert grown.quarantine.keys() == {bridge.id, follower.id}
    assert grown.cases.keys() == lock.cases.keys() | {free.id}
    for split in {lock.cases[one.id], lock.cases[other.id]}:
        assert f"({split})" in grown.quarantine[bridge.id]


def test_a_quarantine_says_what_joins_what() -> None:
    """The reason names the splits, the links, and a case on either side of each; no digest."""
    one, other, lock = two_apart()
    bridge = case(3, one.family, fixtures_digest=other.fixtures_digest)
    grown = made(lock, [one, other, bridge])
    left, right = sorted((lock.cases[fact.id], fact.id) for fact in (one, other))
    reason = grown.quarantine[bridge.id]
    assert reason.startswith("bridges left and right: ")
    assert f"to {left[1]} (left); " in reason
    assert reason.endswith(f"to {right[1]} (right)")
    assert f"the family {one.family!r} joins FA-00003 to {one.id}" in reason
    assert f"the same fixtures joins FA-00003 to {other.id}" in reason


def test_a_bridge_of_two_is_quarantined_whole() -> None:
    """Two newcomers, neither of which bridges by itself, are put aside when they are relatives."""
    one, other, lock = two_apart()
    pair = [case(3, one.family, repair_digest="r"), case(4, other.family, repair_digest="r")]
    assert made(lock, [one, other, *pair]).quarantine.keys() == {"FA-00003", "FA-00004"}
    assert made(lock, [one, other, pair[0]]).quarantine == {}


def test_quarantine_ends_with_its_cause() -> None:
    """A bridge whose wrong link is mended gets a place, and one without its cause is a problem."""
    one, other, lock = two_apart()
    bridge = case(3, one.family, contract_digest=other.contract_digest)
    grown = made(lock, [one, other, bridge])
    mended = case(3, one.family)
    (stale, idle) = verify([one, other, mended], grown)
    assert "it was made from the archive" in stale
    assert idle.startswith("FA-00003: it is in quarantine and bridges nothing")
    assert made(grown, [one, other, mended]).cases["FA-00003"] == lock.cases[one.id]


def test_withdrawing_the_bridge_frees_the_others() -> None:
    """Of relatives in quarantine those that do not bridge get places once the bridge is gone."""
    one, other, lock = two_apart()
    names = frozenset({one.id, other.id})
    bridge, sister = case(3, "new", aliases=names), case(4, "new")
    held = made(lock, [one, other, bridge, sister])
    assert held.quarantine.keys() == {bridge.id, sister.id}
    gone = replace(bridge, withdrawn=True)
    freed = made(held, [one, other, gone, sister])
    assert freed.quarantine.keys() == {bridge.id}
    assert "withdrawn" in freed.quarantine[bridge.id]
    assert sister.id in freed.cases
    assert made(freed, [one, other, gone, sister]) == freed
    assert verify([one, other, gone, sister], freed, earlier=held) == []
    # A second bridge among them is still one.
    second = case(5, "new", aliases=names)
    both = made(lock, [one, other, gone, sister, second])
    assert both.quarantine.keys() == {bridge.id, sister.id, second.id}


def test_a_newcomer_may_join_components_of_one_split() -> None:
    """What links two components that are in one split is no bridge; it makes them one."""
    facts = [case(n) for n in range(6)]
    lock = made(None, facts)
    one, other, *_ = (fact for fact in facts if lock.cases[fact.id] == "left")
    between = case(9, one.family, contract_digest=other.contract_digest)
    grown = plan([*facts, between], {"left": "1/2", "right": "1/2"}, salt="s", lock=lock)
    assert grown.lock.cases[between.id] == "left"
    assert grown.effective_n == 5
    (joined,) = [part for part in grown.placements if part.new_count]
    assert joined.component.cases == tuple(sorted([one.id, other.id, between.id]))
    assert joined.new_count == 1


def test_growth_heads_for_the_ratios_again() -> None:
    """Newcomers that are nobody's relatives go where cases are missing, the locked ones counted."""
    facts = [case(n, "old" if n < 9 else None) for n in range(10)]
    lock = made(None, facts)
    grown = plan(
        [*facts, *(case(n) for n in range(10, 18))], dict(lock.ratios), salt="s", lock=lock
    )
    assert grown.case_counts == {"left": 9, "right": 9}

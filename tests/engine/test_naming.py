"""Contents as numbers: nothing is lost or made up on the way to a digest and back."""

import json

from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.naming import NO_CONTENTS, Chosen, Listed, Names
from holdfast.model.digest import Digest, digest_bytes
from holdfast.ports import Stored
from holdfast.store.memory import MemoryStore

ABSENT = digest_bytes(b"absent")


def digests(count: int) -> list[Digest]:
    return [digest_bytes(b"%d" % number) for number in range(count)]


def test_every_content_is_found_by_its_digest_however_many_there_are() -> None:
    names = digests(3000)
    listed = Listed(Stored(name, place, 2 * place) for place, name in enumerate(names))
    assert [listed.number(name) for name in names] == list(range(3000))
    assert [listed.digest(number) for number in range(3000)] == names
    assert (listed.sizes[7], listed.at[7]) == (7, 14)


def test_what_is_not_there_has_no_number() -> None:
    listed = Listed([Stored(digest_bytes(b"a"), 1, 1)])
    assert [listed.number(name) for name in (ABSENT, "", "not a digest", "ab" * 31)] == [-1] * 4
    assert list(listed.numbers([ABSENT, digest_bytes(b"a")])) == [0]
    assert Listed().number(ABSENT) == -1


def test_what_is_listed_twice_is_one_content_and_as_young_as_the_younger() -> None:
    name = digest_bytes(b"a")
    listed = Listed([Stored(name, 1, 5), Stored(ABSENT, 1, 1), Stored(name, 1, 9)])
    assert (len(listed), listed.number(name), listed.at[0]) == (2, 0, 9)


def test_some_contents_are_told_in_the_order_of_the_list() -> None:
    names = digests(5)
    listed = Listed(Stored(name, 10 + place, 0) for place, name in enumerate(names))
    some = Chosen(listed, bytearray([0, 1, 0, 1, 1]))
    assert (len(some), list(some.digests()), some.size) == (3, [names[1], names[3], names[4]], 38)
    assert [name in some for name in (*names, ABSENT)] == [False, True, False, True, True, False]
    assert not NO_CONTENTS
    assert ABSENT not in NO_CONTENTS


@given(st.lists(st.sets(st.integers(0, 40)), max_size=40), st.sets(st.integers(0, 39)))
def test_all_that_contents_name_is_reached_once(graph: list[set[int]], wanted: set[int]) -> None:
    store, names = MemoryStore(), list[Digest]()
    below: dict[Digest, set[Digest]] = {}
    for number, earlier in enumerate(graph):
        named = {names[one] for one in earlier if one < len(names)} | {ABSENT}
        names.append(store.put(json.dumps({"n": number, "of": sorted(named)}).encode()))
        below[names[-1]] = named - {ABSENT}
    roots = {names[one] for one in wanted if one < len(names)}
    expected, pending = set[Digest](), list(roots)
    while pending:
        expected.add(one := pending.pop())
        pending += below[one] - expected
    listed = Listed(store.stored())
    found = Names(store, listed)
    assert found.closure({*roots, ABSENT}) == expected
    seen = bytearray(len(listed))
    reached = list(found.reached(listed.numbers(sorted(roots)), seen))
    assert {listed.digest(number) for number in reached} == expected
    assert len(reached) == len(expected) == seen.count(1)
    assert not list(found.reached(listed.numbers(sorted(roots)), seen))

"""One value has one encoding."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.digest import EncodingError, Json, canonical, digest_bytes, digest_json, same

GOLDEN: list[tuple[Json, bytes, str]] = [
    ({}, b"{}", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    ([], b"[]", "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"),
    (None, b"null", "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"),
    (True, b"true", "b5bea41b6c623f7c09f1bf24dcae58ebab3c0cdd90ad966bc43a45b44867e12b"),
    (1, b"1", "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"),
    ("é→𝄞", '"é→𝄞"'.encode(), ""),
    ('"\\\n\x01', b'"\\"\\\\\\n\\u0001"', ""),
    ({"b": 1, "a": [1, 2]}, b'{"a":[1,2],"b":1}', ""),
    ({"é": 1, "z": 2, "Z": 3}, '{"Z":3,"z":2,"é":1}'.encode(), ""),
    (0.1, b'{"$decimal":"0.1"}', ""),
    (1e-7, b'{"$decimal":"1e-07"}', ""),
    (1.0, b"1", ""),
    (-0.0, b"0", ""),
    (1e22, b"10000000000000000000000", ""),
    (-2.5, b'{"$decimal":"-2.5"}', ""),
    (10**30, b"1" + b"0" * 30, ""),
    (("tuple", "like", "list"), b'["tuple","like","list"]', ""),
]


@pytest.mark.req("R1", "R8", "R15", "R162")
@pytest.mark.parametrize("value, encoding, digest", GOLDEN)
def test_golden_encodings_never_change(value: Json, encoding: bytes, digest: str) -> None:
    assert canonical(value) == encoding
    assert digest_json(value) == digest_bytes(encoding)
    assert not digest or digest_json(value) == digest


@pytest.mark.req("R162")
def test_a_golden_digest_of_everything_at_once() -> None:
    value: Json = {"ключ": [None, True, False, -1, 0.5, "x\u2028"], "a": {"b": {}, "a": []}}
    assert digest_json(value) == "5fbba91398430e96c218b020d8d3829090ecab9b371554df9f8ee5b0a04001df"


@pytest.mark.req("R8")
def test_the_order_of_keys_is_irrelevant() -> None:
    assert canonical({"a": 1, "b": {"c": 2, "d": 3}}) == canonical({"b": {"d": 3, "c": 2}, "a": 1})


def test_true_is_not_one() -> None:
    assert canonical({"x": True}) != canonical({"x": 1})
    assert canonical({"x": False}) != canonical({"x": 0})


def test_a_whole_float_is_the_integer() -> None:
    assert canonical(2.0) == canonical(2)
    assert canonical(0.5) != canonical("0.5")


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        "\ud800",
        {"\udfff": 1},
        {"$decimal": "0.5"},
        {"deep": [{"$decimal": 1}]},
        {1: "x"},
        {None: "x"},
        b"bytes",
        {1, 2},
        range(3),
        [1j],
    ],
    ids=repr,
)
def test_what_has_no_encoding_is_refused(value: Json) -> None:
    with pytest.raises(EncodingError):
        canonical(value)


@pytest.mark.req("E11", "R15")
@pytest.mark.parametrize(
    "one, other",
    [
        (["ab", "c"], ["a", "bc"]),
        (["a", "b"], ["a,b"]),
        (["a", ["b"]], ["a", "b"]),
        ({"a": "b"}, ["a", "b"]),
        ({"a": '","b":"'}, {"a": "", "b": ""}),
        ([""], []),
        ([None], []),
        (["1"], [1]),
        ({"a": {}}, {"a": []}),
        ({"a": None}, {}),
    ],
)
def test_neighbours_never_run_together(one: Json, other: Json) -> None:
    assert digest_json(one) != digest_json(other)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(codec="utf-8")).filter(lambda key: key != "$decimal"),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


def typed(value: Json) -> object:
    """Python says True == 1; here they differ."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return (type(value).__name__, value)


@pytest.mark.req("E11")
@given(plain, plain)
def test_different_values_have_different_encodings(one: Json, other: Json) -> None:
    assert (canonical(one) == canonical(other)) == (typed(one) == typed(other))


@pytest.mark.parametrize(
    "one, other, alike",
    [
        (1, True, False),
        (0, False, False),
        (1, 1.0, True),
        (True, True, True),
        ({"a": [1, {"b": 0}]}, {"a": [1, {"b": False}]}, False),
        ({"a": 1, "b": True}, {"b": True, "a": 1}, True),
        ([1, 2], [1, 3], False),
        ((1, 2), (1, True), False),
        ([True, 1], [True, 1], True),
        (None, {}, False),
    ],
)
def test_values_are_the_same_exactly_if_their_digests_are(
    one: Json, other: Json, alike: bool
) -> None:
    assert same(one, other) is same(other, one) is alike
    assert (digest_json(one) == digest_json(other)) is alike

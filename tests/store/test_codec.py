"""Events as text: what goes in comes out, and the text itself is pinned."""

import hashlib
import json
import types
import typing
from dataclasses import fields, is_dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import IntegrityError
from holdfast.model import event as events
from holdfast.model import line as lines
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptAccepted,
    AttemptStarted,
    Event,
    Options,
    Reason,
    Recorded,
    Reused,
    RunEnded,
    RunResumed,
    RunStarted,
    StepsReused,
)
from holdfast.model.plan import RunId, StepId
from holdfast.store.codec import (
    CLASSES,
    KINDS,
    decode,
    encode,
    event_json,
    first_hash,
    kind_of,
    next_hash,
    timestamp,
)

A, B, C = (Digest(letter * 64) for letter in "abc")
TEXT = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates too


def values_of(hint: object) -> st.SearchStrategy[object]:
    """Any value that an annotation allows."""
    if isinstance(hint, typing.NewType):
        return values_of(hint.__supertype__)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return st.sampled_from(args)
    if origin in {typing.Union, types.UnionType}:
        return st.one_of([values_of(arg) for arg in args])
    if origin is tuple:
        return st.lists(values_of(args[0]), max_size=4).map(tuple)
    if hint is type(None):
        return st.none()
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.integers(-(2**62), 2**62)
    if hint is str:
        return TEXT
    assert isinstance(hint, type)
    assert is_dataclass(hint) or issubclass(hint, tuple)
    return st.builds(
        hint, **{name: values_of(sub) for name, sub in typing.get_type_hints(hint).items()}
    )


def same(one: object, two: object) -> bool:
    """Equal, and of the same types all the way down (a list is not a tuple, True is not 1)."""
    if type(one) is not type(two):
        return False
    if is_dataclass(one):
        return all(same(getattr(one, item.name), getattr(two, item.name)) for item in fields(one))
    if isinstance(one, tuple):
        assert isinstance(two, tuple)
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))
    return one == two


def test_every_class_of_the_model_that_ends_a_sentence_in_a_journal_is_known() -> None:
    nested = {
        "Options",
        "PageThen",
        "PaidThen",
        "Doubted",
        "Reason",
        "Reused",
        "SaidThen",
        "Shown",
        "Skipped",
        "Recorded",
        "StoodThen",
        "Taken",
        "ToldThen",
        "UpTo",
        "Used",
        "VouchedThen",
        "Withdrawn",
    }
    written = {
        name
        for module in (events, lines)
        for name, noun in vars(module).items()
        if isinstance(noun, type) and noun.__module__ == module.__name__ and name not in nested
    }
    assert {noun.__name__ for noun in CLASSES} == written
    assert len(set(KINDS)) == len(CLASSES)


@pytest.mark.parametrize("noun", CLASSES, ids=lambda noun: noun.__name__)
def test_what_was_written_is_read_back(noun: type[Event]) -> None:
    @settings(deadline=None)
    @given(values_of(noun))
    def check(event: object) -> None:
        kind, body = encode(typing.cast("Event", event))
        assert same(decode(kind, body), event)
        assert body.isascii()
        assert encode(decode(kind, body)) == (kind, body)

    check()


STARTED = AttemptStarted(StepId("build"), 2, A, B, C, Reason("input_changed", ("src/a.py",)))
GOLDEN = [
    (
        RunStarted(RunId("r-1"), "main", "shop", A, B, Options(force_steps=(StepId("x"),)), "e-1"),
        "run_started",
        (
            f'{{"run":"r-1","line":"main","project":"shop","plan":"{A}","w_ref":"{B}",'
            '"options":{"force_steps":["x"]},"engine":"e-1"}'
        ),
    ),
    (
        STARTED,
        "attempt_started",
        (
            f'{{"step":"build","attempt":2,"config_ref":"{A}","input_ref":"{B}","own_ref":"{C}",'
            '"reason":["input_changed",["src/a.py"]]}'
        ),
    ),
    (
        AttemptAccepted(StepId("größe"), 1, A, verified=True, duration_ms=12),
        "attempt_accepted",
        f'{{"step":"gr\\u00f6\\u00dfe","attempt":1,"digest":"{A}","verified":true,"duration_ms":12}}',
    ),
    (
        StepsReused((Reused(StepId("a"), A, B), Reused(StepId("b"), B, C, "tree", "reguarded"))),
        "steps_reused",
        f'{{"items":[["a","{A}","{B}","bytes","unchanged"],["b","{B}","{C}","tree","reguarded"]]}}',
    ),
    (RunEnded("completed"), "run_ended", '{"status":"completed"}'),
]


@pytest.mark.parametrize("event,kind,body", GOLDEN, ids=[line[1] for line in GOLDEN])
def test_the_text_of_an_event_never_changes(event: Event, kind: str, body: str) -> None:
    assert encode(event) == (kind, body)
    assert decode(kind, body) == event


@given(
    st.lists(
        st.tuples(
            st.text(max_size=3), st.sampled_from(["a" * 64, 'a"', "\\", "\x1f", "\x7f", "é"])
        ),
        min_size=9,
        max_size=12,
    )
)
def test_many_named_tuples_are_written_as_json_writes_them(pairs: list[tuple[str, str]]) -> None:
    digest = Digest("c" * 64)
    for rows in (pairs, [(name.strip("\x00"), digest) for name, _ in pairs], [("s", digest)] * 9):
        items = tuple(Reused(StepId(name), Digest(ref), digest) for name, ref in rows)
        body = json.dumps({"items": items}, separators=(",", ":"))
        assert encode(StepsReused(items)) == ("steps_reused", body)
        assert decode("steps_reused", body) == StepsReused(items)


def test_a_kind_of_the_future_is_refused_by_name() -> None:
    with pytest.raises(IntegrityError, match="no event 'step_dreamt'") as caught:
        decode("step_dreamt", "{}")
    assert "newer Holdfast" in str(caught.value)


def test_a_field_of_the_future_is_refused_by_name() -> None:
    with pytest.raises(IntegrityError, match="unknown field 'colour'") as caught:
        decode("run_ended", '{"status":"completed","colour":"red"}')
    assert "newer Holdfast" in str(caught.value)


@pytest.mark.parametrize(
    "kind,body",
    [
        ("run_ended", ""),
        ("run_ended", "{}"),
        ("run_ended", "[]"),
        ("run_ended", '"completed"'),
        ("run_ended", '{"status":"completed"} x'),
        ("run_ended", '{"status":'),
        ("attempt_started", '{"step":"a","reason":7}'),
        ("attempt_started", '{"step":"a","reason":["x"]}'),
        ("steps_reused", '{"items":[["a","b","c","d","e","f"]]}'),
        ("steps_reused", '{"items":null}'),
        ("run_started", '{"options":{"dream":true}}'),
        ("run_ended", '{"status":' + "[" * 100_000),
    ],
)
def test_text_that_is_no_event_is_refused(kind: str, body: str) -> None:
    with pytest.raises(IntegrityError):
        decode(kind, body)


@given(st.sampled_from(KINDS), st.text(max_size=50))
def test_garbage_is_always_refused(kind: str, body: str) -> None:
    with pytest.raises(IntegrityError):
        decode(kind, body)


def test_the_chain_covers_everything_and_moves_nothing() -> None:
    start = first_hash("run:r-1")
    one = next_hash(start, 1, 5, "ab", "c")
    others = [
        next_hash(first_hash("run:r-2"), 1, 5, "ab", "c"),
        next_hash(start, 2, 5, "ab", "c"),
        next_hash(start, 1, 6, "ab", "c"),
        next_hash(start, 1, 5, "a", "bc"),
        next_hash(start, 1, 5, "abc", ""),
    ]
    assert len({one, *others}) == 6


def test_the_chain_is_the_one_that_the_format_states() -> None:
    start = hashlib.sha256(b"line:main").digest()
    numbers = (1).to_bytes(8, "big") + (1_700_000_000_000).to_bytes(8, "big")
    sizes = (9).to_bytes(4, "big") + (2).to_bytes(4, "big")
    stated = hashlib.sha256(start + numbers + sizes + b"run_ended" + b"{}").digest()
    assert next_hash(first_hash("line:main"), 1, 1_700_000_000_000, "run_ended", "{}") == stated


@pytest.mark.parametrize(
    "at,text",
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_007, "2023-11-14T22:13:20.007Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_shown_in_utc_to_the_millisecond(at: int, text: str) -> None:
    assert timestamp(at) == text


def test_a_line_of_the_trace_names_everything() -> None:
    line = event_json(Recorded(7, 1_700_000_000_123, STARTED))
    assert list(line)[:4] == ["seq", "ts", "event", "step"]
    assert line["seq"] == 7
    assert line["ts"] == "2023-11-14T22:13:20.123Z"
    assert line["event"] == "attempt_started"
    assert line["reason"] == {"code": "input_changed", "because": ["src/a.py"]}
    assert line["reusable"] is True
    assert json.loads(json.dumps(line)) == line


def test_a_line_of_the_trace_shows_lists_of_named_things_as_objects() -> None:
    line = event_json(Recorded(1, 0, StepsReused((Reused(StepId("a"), A, B),))))
    assert line["items"] == [
        {"step": "a", "config_ref": A, "digest": B, "form": "bytes", "code": "unchanged"}
    ]


@pytest.mark.parametrize("noun", CLASSES, ids=lambda noun: noun.__name__)
def test_no_field_hides_what_the_journal_adds(noun: type[Event]) -> None:
    assert not {"seq", "ts", "event"} & {item.name for item in fields(noun)}


def test_the_kind_is_the_name_of_the_class_in_snake_case() -> None:
    assert kind_of(RunResumed("e")) == "run_resumed"

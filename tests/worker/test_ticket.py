"""A ticket is read from whatever form it comes in, and can grant nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.worker.ticket import Entity, entity, read_ticket, ticket_from, ticket_json

FRONT = """---
id: TIDE-7
title: Give the mean
eoi: {label: mean, path: tides.py}
concerns: accuracy
acceptance: [one, two]
---
The body.
"""


@pytest.mark.req("R109", "R144")
def test_a_markdown_file_with_front_matter() -> None:
    found = read_ticket(FRONT, "some-file")
    assert (found.id, found.title, found.body) == ("TIDE-7", "Give the mean", "The body.")
    assert found.eoi == Entity("mean", "tides.py")
    assert (found.concerns, found.acceptance) == (("accuracy",), ("one", "two"))
    assert ticket_from(ticket_json(found)) == found


@pytest.mark.req("R109")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (json.dumps({"number": 1, "title": "T", "body": "B", "html_url": "u"}), ("ticket-1", "T", "B", "u")),
        ('{"iid": 3, "title": "T", "description": "B", "web_url": "u"}', ("ticket-3", "T", "B", "u")),
        (json.dumps({"ticket_id": "x-1", "title": "T", "description": "B"}), ("x-1", "T", "B", "")),
        (json.dumps({"number": 5, "title": "T", "body": None, "url": "u"}), ("ticket-5", "T", "", "u")),
        ("title:\tT\nstate:\tOPEN\nnumber:\t9\nurl:\tu\n--\nB", ("ticket-9", "T", "B", "u")),
        ("# T #\n\nB\n", ("name", "T", "B", "")),
        ("T\r\nB\r\n", ("name", "T", "B", "")),
    ],
)  # fmt: skip
def test_issues_of_forges_and_plain_words(text: str, wanted: tuple[str, ...]) -> None:
    found = read_ticket(text, "name")
    assert (found.id, found.title, found.body, found.url) == wanted


def test_words_alone_get_an_id_that_their_words_decide() -> None:
    one, again, other = (
        read_ticket(text) for text in ("Give the mean!", "Give the mean!", "Give the mean?")
    )
    assert one.id == again.id != other.id
    assert one.id.startswith("give-the-mean-")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"number": 1, "title": "T"}]', "is a list"),
        ("title:\tT\nstate:\tOPEN\nnumber:\t9", "cut short"),
        ('{"number": true, "title": "T"}', "is no text"),
        ('{"title": ', "not JSON"),
    ],
)
def test_what_only_looks_like_an_issue_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_ticket(text)


def test_words_may_begin_as_they_like() -> None:
    assert read_ticket("{name} is not filled in").title == "{name} is not filled in"
    assert read_ticket("[bug] it fails").title == "[bug] it fails"


@pytest.mark.req("D37")
@pytest.mark.parametrize("key", ["validate", "scope", "model", "network", "approve", "secrets"])
def test_a_ticket_cannot_say_what_may_be_done(key: str) -> None:
    with pytest.raises(UsageError, match=key):
        read_ticket(f"---\ntitle: t\n{key}: x\n---\nbody")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "{",
        '{"number": 1}',
        "---\nid: a\n",
        "---\n- a\n---\n",
        "---\nid: [a]\n---\nx",
        "---\nid: ../up\n---\nx",
        "---\nconcerns: {a: b}\n---\nx",
        "---\neoi: 7\n---\nx",
        "---\n{: [}\n---\nx",
        "---\na: &a [*a]\n---\nx",
        "x" * (1 << 20) + "y",
    ],
)
def test_what_is_no_ticket_is_refused_in_words(text: str) -> None:
    with pytest.raises(UsageError):
        read_ticket(text)


@given(st.text(max_size=300), st.text(max_size=20))
def test_no_text_does_worse_than_be_refused(text: str, name: str) -> None:
    try:
        found = read_ticket(text, name)
    except UsageError:
        return
    assert found.id
    assert "/" not in found.id
    assert "\n" not in found.title


def test_an_entity_of_interest_as_a_person_writes_it() -> None:
    assert entity("mean") == Entity("mean")
    assert entity("src/tides.py") == Entity("src/tides.py", "src/tides.py")
    assert entity("the mean=src/tides.py") == Entity("the mean", "src/tides.py")

"""The files of a project as a planner sees them: sorted, within a bound, nothing that says it is secret."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.planner.listing import listing

PATHS = st.lists(
    st.lists(st.text("abcxyz", min_size=1, max_size=6), min_size=1, max_size=5).map("/".join),
    max_size=60,
    unique=True,
)


def test_files_are_one_line_each_in_order() -> None:
    assert listing(["b.py", "a/c.py", "a/b.py"]) == "a/b.py\na/c.py\nb.py"
    assert listing([]) == ""


def test_deep_folders_become_one_line_first() -> None:
    paths = [f"src/deep/er/file{n}.py" for n in range(9)] + ["src/app.py", "top.py"]
    assert listing(paths, tokens=16) == "src/app.py\nsrc/deep/er/ (9 files)\ntop.py"
    assert listing(paths, tokens=7) == "src/ (10 files)\ntop.py"


def test_what_is_still_too_much_is_counted() -> None:
    text = listing([f"file{n:03}.txt" for n in range(100)], tokens=20)
    assert text == "file000.txt\nfile001.txt\nfile002.txt\nfile003.txt\nfile004.txt\n… and 95 more"


def test_names_of_secrets_are_left_out() -> None:
    hidden = [
        ".env",
        "app/.env.local",
        "a.pem",
        "keys/id_rsa",
        "my-secrets/a.txt",
        "Credentials.json",
    ]
    assert listing([*hidden, "environment.py"]) == "environment.py"


@given(PATHS, st.integers(8, 200))
def test_it_is_the_same_for_the_same_files_and_never_longer_than_its_bound(
    paths: list[str], tokens: int
) -> None:
    text = listing(paths, tokens)
    assert text == listing(paths[::-1], tokens)
    assert len(text) <= tokens * 4

"""Amounts in words: what is left is never told as more than it is, what is needed never as less."""

import pytest

from holdfast.model.money import dollars, dollars_left, dollars_needed


@pytest.mark.req("R165")
@pytest.mark.parametrize(
    ("micro", "left", "needed"),
    [
        (0, "$0", "$0"),
        (149_000, "$0.14", "$0.15"),
        (150_000, "$0.15", "$0.15"),
        (151_000, "$0.15", "$0.16"),
        (9_950, "$0.0099", "$0.01"),
        (37, "$0.000037", "$0.000037"),
    ],
)
def test_rounding_never_flatters(micro: int, left: str, needed: str) -> None:
    assert (dollars_left(micro), dollars_needed(micro)) == (left, needed)


@pytest.mark.req("R165")
def test_what_is_whole_reads_alike() -> None:
    for micro in (0, 100, 10_000, 5_000_000):
        assert dollars(micro) == dollars_left(micro) == dollars_needed(micro)

"""What a call may use is known before it is sent, and never too little where it can be known."""

import pytest

from holdfast.core.reserve import (
    MOST_OUTPUT,
    MOST_RATIO,
    USUAL_OUTPUT,
    Seen,
    counted,
    input_bound,
    output_bound,
)
from holdfast.model.call import Usage


@pytest.mark.parametrize("size, tokens", [(0, 0), (1, 1), (2, 1), (3, 2), (1000, 500)])
def test_before_a_model_was_seen_a_token_is_two_bytes_rounded_up(size: int, tokens: int) -> None:
    assert input_bound(size, Seen()) == tokens


def test_what_a_model_used_before_is_what_the_same_size_may_use_again() -> None:
    seen = Seen().and_also(size=300, input_tokens=100)
    assert input_bound(300, seen) >= 100
    assert input_bound(3000, seen) == 1002  # 334 for 1,000 bytes: rounded up, never down


def test_the_dearest_call_counts_not_the_last() -> None:
    seen = Seen().and_also(1000, 400).and_also(1000, 200)
    assert seen == Seen(400)
    assert seen.and_also(1000, 500) == Seen(500)


def test_a_model_that_counts_beyond_reason_is_believed_up_to_a_bound() -> None:
    assert Seen().and_also(10, 1_000_000) == Seen(MOST_RATIO)
    assert Seen().and_also(0, 5) == Seen(5000)  # an empty request is taken for one byte


def test_an_answer_is_bounded_by_the_plan_then_by_who_asks_then_by_us() -> None:
    assert output_bound(77, 50, limited=True) == 77
    assert output_bound(77, 50, limited=False) == 77
    assert output_bound(0, 50, limited=True) == 0
    assert output_bound(None, 50, limited=True) == 50
    assert output_bound(None, None, limited=True) == MOST_OUTPUT
    assert output_bound(None, 50, limited=False) == USUAL_OUTPUT


def test_what_a_provider_counts_is_taken_as_it_is() -> None:
    told = Usage(input=100, output=20, cached=60, stored=30)
    assert counted(told, size=10_000, said=10_000) == told


def test_a_provider_that_counts_nothing_is_counted_by_the_bytes() -> None:
    assert counted(Usage(), size=7, said=5) == Usage(4, 3)
    assert counted(Usage(input=-4, output=-1), size=7, said=5) == Usage(4, 3)
    assert counted(Usage(input=1, output=1), size=7, said=5) == Usage(1, 1)


def test_no_more_can_be_cached_and_stored_than_was_read() -> None:
    assert counted(Usage(100, 1, cached=150, stored=50), 1, 1) == Usage(100, 1, 100, 0)
    assert counted(Usage(100, 1, cached=70, stored=50), 1, 1) == Usage(100, 1, 70, 30)
    assert counted(Usage(100, 1, cached=-5, stored=-1), 1, 1) == Usage(100, 1, 0, 0)

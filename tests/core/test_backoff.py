"""How long a provider is left alone after it failed."""

from holdfast.core.backoff import MOST_TRIES, PATIENCE, wait_before

MIDDLE = 32  # the spread that leaves a wait as it is


def test_each_wait_is_twice_the_one_before() -> None:
    waits = [wait_before(tries, None, MIDDLE) for tries in range(1, MOST_TRIES)]
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert wait_before(1, None) == 0.5


def test_the_last_try_is_followed_by_none() -> None:
    assert wait_before(MOST_TRIES - 1, None) is not None
    assert wait_before(MOST_TRIES, None) is None
    assert wait_before(MOST_TRIES, 1.0) is None


def test_a_provider_is_never_asked_sooner_than_it_wants() -> None:
    assert wait_before(1, 30.0, MIDDLE) == 30.0
    assert wait_before(5, 3.0, MIDDLE) == 16.0
    assert wait_before(1, PATIENCE, MIDDLE) == PATIENCE
    assert wait_before(1, PATIENCE + 0.1, MIDDLE) is None


def test_calls_that_failed_together_come_back_one_after_the_other() -> None:
    waits = [wait_before(3, None, spread) for spread in range(64)]
    assert len(set(waits)) == 64
    assert waits[0] == 2.0
    assert all(2.0 <= one < 6.0 for one in waits if one)
    assert wait_before(3, None, 64) == waits[0]

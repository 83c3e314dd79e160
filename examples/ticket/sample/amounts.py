"""A stricter check than the tests: large bills, and refunds, which are negative."""

from even import split

for total in (10**18 + 1, -100, -1, 0):
    for people in (1, 3, 7):
        parts = split(total, people)
        assert sum(parts) == total, f"{total} among {people} gives {sum(parts)}"
        assert max(parts) - min(parts) <= 1, f"{total} among {people} is not even: {parts}"

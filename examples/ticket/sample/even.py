"""Splits a bill. Amounts are whole cents."""


def split(total: int, people: int) -> list[int]:
    """What each one pays."""
    return [total // people] * people


def say(cents: int) -> str:
    """An amount as people write it."""
    return f"{cents // 100}.{cents % 100:02}"

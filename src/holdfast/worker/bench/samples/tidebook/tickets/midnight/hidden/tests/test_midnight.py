import unittest
from datetime import date

from tidebook import height_at, read_table, windows_above

FIRST, SECOND = date(2031, 4, 30), date(2031, 5, 1)
TIDES = read_table(
    "2031-04-30 16:00 low 1.00\n2031-04-30 22:00 high 4.00\n2031-05-01 04:00 low 1.00\n"
)


class Midnight(unittest.TestCase):
    def test_is_known_in_the_evening(self):
        self.assertAlmostEqual(height_at(TIDES, FIRST, 23 * 60), 3.799038, places=5)

    def test_is_known_in_the_small_hours(self):
        self.assertAlmostEqual(height_at(TIDES, SECOND, 60), 2.5)
        self.assertAlmostEqual(height_at(TIDES, SECOND, 4 * 60), 1.0)

    def test_meets_at_midnight(self):
        late = height_at(TIDES, FIRST, 24 * 60 - 1)
        early = height_at(TIDES, SECOND, 0)
        self.assertAlmostEqual(late, early, places=1)

    def test_is_unknown_outside_of_the_table(self):
        self.assertIsNone(height_at(TIDES, FIRST, 15 * 60))
        self.assertIsNone(height_at(TIDES, SECOND, 5 * 60))

    def test_a_window_ends_with_the_day_and_begins_with_the_next(self):
        evening = windows_above(TIDES, FIRST, 2.5)
        morning = windows_above(TIDES, SECOND, 2.5)
        self.assertEqual([(one.first, one.last) for one in evening], [(19 * 60, 24 * 60 - 1)])
        self.assertEqual([(one.first, one.last) for one in morning], [(0, 60)])

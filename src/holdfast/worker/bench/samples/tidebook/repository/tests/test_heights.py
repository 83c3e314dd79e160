import unittest
from datetime import date

from tidebook import height_at, read_table, windows_above

DAY = date(2031, 4, 2)
TIDES = read_table(
    "2031-04-02 03:00 high 4.00\n"
    "2031-04-02 09:00 low 1.00\n"
    "2031-04-02 15:00 high 4.00\n"
    "2031-04-02 21:00 low 1.00\n"
)


class Heights(unittest.TestCase):
    def test_is_the_height_of_the_tide_at_its_time(self):
        self.assertAlmostEqual(height_at(TIDES, DAY, 3 * 60), 4.0)
        self.assertAlmostEqual(height_at(TIDES, DAY, 9 * 60), 1.0)

    def test_is_the_mean_half_way(self):
        self.assertAlmostEqual(height_at(TIDES, DAY, 6 * 60), 2.5)

    def test_is_unknown_outside_of_the_table(self):
        self.assertIsNone(height_at(TIDES, DAY, 60))
        self.assertIsNone(height_at(TIDES, DAY, 23 * 60))

    def test_is_unknown_on_a_day_that_is_not_in_the_table(self):
        self.assertIsNone(height_at(TIDES, date(2031, 4, 9), 6 * 60))


class Windows(unittest.TestCase):
    def test_a_window_is_around_high_water(self):
        found = windows_above(TIDES, DAY, 2.5)
        self.assertEqual([(one.first, one.last) for one in found], [(180, 360), (720, 1080)])

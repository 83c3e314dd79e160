import io
import os
import tempfile
import unittest
from datetime import date

import tidebook
from tidebook.cli import main
from tidebook.ranges import daily_ranges

TABLE = (
    "2031-04-02 03:00 high 4.81\n2031-04-02 09:00 low 0.74\n2031-04-02 15:30 high 4.52\n"
    "2031-04-03 03:40 high 4.60\n"
)


class Ranges(unittest.TestCase):
    def test_a_range_is_from_the_lowest_to_the_highest(self):
        found = daily_ranges(tidebook.read_table(TABLE))
        self.assertEqual(list(found), [date(2031, 4, 2)])
        self.assertAlmostEqual(found[date(2031, 4, 2)], 4.07)

    def test_it_is_offered_at_the_top(self):
        self.assertIs(tidebook.daily_ranges, daily_ranges)
        self.assertIn("daily_ranges", tidebook.__all__)

    def test_no_tides_have_no_ranges(self):
        self.assertEqual(daily_ranges([]), {})


class Command(unittest.TestCase):
    def lines(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tides.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(TABLE)
            out = io.StringIO()
            self.assertEqual(main([*words, path], out), 0)
        return out.getvalue().splitlines()

    def test_the_table_shows_it(self):
        first, second = self.lines("table", "--range")
        self.assertTrue(first.endswith("4.52  range 4.07"), first)
        self.assertNotIn("range", second)

    def test_the_table_is_as_before(self):
        self.assertNotIn("range", "".join(self.lines("table")))

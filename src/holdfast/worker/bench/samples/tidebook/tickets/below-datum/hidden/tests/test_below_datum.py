import unittest

from tidebook import TableError, height_at, read_table
from tidebook.show import table


class BelowDatum(unittest.TestCase):
    def test_a_height_may_have_a_sign(self):
        tides = read_table("2031-03-09 10:31 high +6.02\n2031-03-09 16:40 low -0.31\n")
        self.assertEqual([tide.height for tide in tides], [6.02, -0.31])

    def test_such_a_height_is_shown(self):
        self.assertIn("-0.31", table(read_table("2031-03-09 16:40 low -0.31\n")))

    def test_half_way_is_the_mean(self):
        tides = read_table("2031-03-09 06:00 high 2.00\n2031-03-09 12:00 low -1.00\n")
        self.assertAlmostEqual(height_at(tides, tides[0].day, 9 * 60), 0.5)

    def test_remarks_are_skipped(self):
        tides = read_table("# Harbour office\n2031-03-09 16:40 low -0.31  # springs\n")
        self.assertEqual(len(tides), 1)

    def test_lines_are_counted_as_in_the_file(self):
        with self.assertRaises(TableError) as caught:
            read_table("# Harbour office\n\n2031-03-09 noon low 0.1 # ?\n")
        self.assertEqual(caught.exception.number, 3)

    def test_two_signs_are_none(self):
        with self.assertRaises(TableError):
            read_table("2031-03-09 16:40 low --0.31\n")

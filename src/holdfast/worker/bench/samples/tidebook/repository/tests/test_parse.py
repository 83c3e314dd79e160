import unittest
from datetime import date

from tidebook import TableError, read_table


class ReadTable(unittest.TestCase):
    def test_reads_tides_in_order(self):
        tides = read_table("2031-04-02 03:12 high 4.81\n\n2031-04-02 09:25 low 0.74\n")
        self.assertEqual([tide.height for tide in tides], [4.81, 0.74])
        self.assertEqual(tides[1].minutes, 9 * 60 + 25)
        self.assertEqual(tides[0].day, date(2031, 4, 2))

    def test_names_the_line_that_is_no_tide(self):
        with self.assertRaises(TableError) as caught:
            read_table("2031-04-02 03:12 high 4.81\n2031-04-02 noon high 4.81\n")
        self.assertEqual(caught.exception.number, 2)

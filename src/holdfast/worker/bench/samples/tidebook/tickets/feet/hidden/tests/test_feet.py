import io
import os
import tempfile
import unittest

from tidebook import read_table, units
from tidebook.cli import main
from tidebook.show import table

TABLE = "2031-04-02 03:00 high 4.00\n2031-04-02 09:00 low 1.00\n2031-04-02 15:00 high 4.00\n"


class Units(unittest.TestCase):
    def test_there_and_back(self):
        self.assertAlmostEqual(units.to_metres(10, "ft"), 3.048)
        self.assertAlmostEqual(units.from_metres(3.048, "ft"), 10)
        self.assertEqual(units.to_metres(2.5, "m"), 2.5)
        self.assertEqual(units.from_metres(2.5, "m"), 2.5)

    def test_other_units_are_refused(self):
        with self.assertRaises(ValueError):
            units.to_metres(1, "fathom")
        with self.assertRaises(ValueError):
            units.from_metres(1, "")


class Shown(unittest.TestCase):
    def test_feet_have_one_digit(self):
        self.assertEqual(
            table(read_table(TABLE), "ft"),
            "2031-04-02  03:00 high  13.1  09:00 low    3.3  15:00 high  13.1",
        )

    def test_metres_are_as_before(self):
        self.assertIn("high  4.00", table(read_table(TABLE)))


class Command(unittest.TestCase):
    def said(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tides.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(TABLE)
            out = io.StringIO()
            self.assertEqual(main([*words, path], out), 0)
        return out.getvalue()

    def test_table_takes_a_unit(self):
        self.assertIn("13.1", self.said("table", "--unit", "ft"))

    def test_above_takes_a_unit(self):
        self.assertEqual(self.said("above", "8.2", "--unit", "ft"), self.said("above", "2.5"))

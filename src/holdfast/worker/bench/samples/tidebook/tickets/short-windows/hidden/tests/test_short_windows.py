import contextlib
import io
import os
import tempfile
import unittest
from datetime import date

from tidebook import read_table, windows_above
from tidebook.cli import main

DAY = date(2031, 4, 2)
TABLE = (
    "2031-04-02 03:00 high 4.00\n2031-04-02 09:00 low 1.00\n"
    "2031-04-02 15:00 high 4.00\n2031-04-02 21:00 low 1.00\n"
)


class ShortWindows(unittest.TestCase):
    def test_all_windows_are_found_as_before(self):
        self.assertEqual(len(windows_above(read_table(TABLE), DAY, 2.5)), 2)

    def test_a_window_that_is_long_enough_stays(self):
        found = windows_above(read_table(TABLE), DAY, 2.5, shortest=181)
        self.assertEqual([one.first for one in found], [180, 720])

    def test_a_window_that_is_one_minute_short_goes(self):
        found = windows_above(read_table(TABLE), DAY, 2.5, 182)
        self.assertEqual([one.first for one in found], [720])


class Command(unittest.TestCase):
    def said(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tides.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(TABLE)
            out = io.StringIO()
            self.assertEqual(main([*words, path], out), 0)
        return out.getvalue()

    def test_above_takes_minutes(self):
        self.assertEqual(self.said("above", "2.5", "--for", "182"), "2031-04-02  12:00-18:00\n")
        self.assertEqual(self.said("above", "2.5", "--for", "999"), "2031-04-02  none\n")

    def test_no_minute_is_a_usage_error(self):
        with self.assertRaises(SystemExit) as caught, contextlib.redirect_stderr(io.StringIO()):
            main(["above", "2.5", "--for", "0", "tides.txt"])
        self.assertEqual(caught.exception.code, 2)

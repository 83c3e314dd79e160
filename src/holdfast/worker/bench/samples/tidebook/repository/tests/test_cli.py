import io
import os
import tempfile
import unittest

from tidebook.cli import main

TABLE = "2031-04-02 03:00 high 4.00\n2031-04-02 09:00 low 1.00\n2031-04-02 15:00 high 4.00\n"


class Command(unittest.TestCase):
    def run_on(self, table, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tides.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(table)
            out = io.StringIO()
            code = main([*words, path], out)
        return code, out.getvalue()

    def test_prints_the_table(self):
        code, said = self.run_on(TABLE, "table")
        self.assertEqual(code, 0)
        self.assertEqual(
            said, "2031-04-02  03:00 high  4.00  09:00 low   1.00  15:00 high  4.00\n"
        )

    def test_prints_windows(self):
        code, said = self.run_on(TABLE, "above", "3.9")
        self.assertEqual(code, 0)
        self.assertTrue(said.startswith("2031-04-02  03:00-03:"), said)

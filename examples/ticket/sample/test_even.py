import unittest

from even import say, split


class Splitting(unittest.TestCase):
    def test_a_round_sum(self):
        self.assertEqual(split(900, 3), [300, 300, 300])

    def test_nothing_is_lost(self):
        for total in range(0, 500, 7):
            for people in range(1, 8):
                self.assertEqual(sum(split(total, people)), total, (total, people))

    def test_nobody_pays_more_than_a_cent_more_than_another(self):
        for total in range(0, 500, 7):
            for people in range(1, 8):
                parts = split(total, people)
                self.assertLessEqual(max(parts) - min(parts), 1, (total, people))

    def test_an_amount_is_written_with_two_digits(self):
        self.assertEqual(say(1205), "12.05")


if __name__ == "__main__":
    unittest.main()

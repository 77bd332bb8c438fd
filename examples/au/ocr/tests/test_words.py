import unittest

from words import regions, text_of

HEADER = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n"


def row(line, text, confidence="96.25", level=5):
    return f"{level}\t1\t1\t1\t{line}\t1\t10\t20\t30\t40\t{confidence}\t{text}\n"


class Words(unittest.TestCase):
    def test_a_word_has_its_place_and_confidence(self):
        (word,) = regions(HEADER + row(1, "Ferry"))
        self.assertEqual(word.as_region(), {"text": "Ferry", "confidence": 0.96, "bbox": [10, 20, 40, 60]})

    def test_lines_stay_lines(self):
        self.assertEqual(text_of(regions(HEADER + row(1, "a") + row(1, "b") + row(2, "c"))), "a b\nc")

    def test_what_is_no_word_is_left_out(self):
        self.assertEqual(regions(HEADER + row(1, "", "-1", level=4) + row(1, " ", "95") + "rubbish\n"), [])

    def test_confidence_stays_within_bounds(self):
        self.assertEqual([w.confidence for w in regions(HEADER + row(1, "a", "-1") + row(1, "b", "101"))], [0.0, 1.0])


if __name__ == "__main__":
    unittest.main()

"""Tests of the program, without a container: python3 -m unittest discover tests"""

import io
import json
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "src"))
import main  # noqa: E402


def run(given, raw):
    """Returns exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    return main.main(given, io.BytesIO(raw), out, err), out.getvalue(), err.getvalue()


class Test(unittest.TestCase):
    def test_words(self):
        code, out, _ = run(["--min-length", "4"], b"The quick brown fox")
        self.assertEqual((code, json.loads(out)), (0, {"words": 2}))

    def test_refusals(self):
        for given, raw in (([], b""), ([], b"\xff"), (["--min-length=x"], b"a"), (["--secret=x"], b"a")):
            code, out, err = run(given, raw)
            self.assertEqual((code, out), (2, ""))
            self.assertIn("Error", err)


if __name__ == "__main__":
    unittest.main()

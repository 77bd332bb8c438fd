import time
import unittest

import program
from errors import Failed


def run(script, seconds=60):
    return program.run(["sh", "-c", script], None, time.monotonic() + seconds)


class Programs(unittest.TestCase):
    def test_both_outputs_are_kept_apart(self):
        self.assertEqual(run("echo out; echo err >&2; exit 3"), (3, b"out\n", b"err\n"))

    def test_one_that_prints_without_end_is_stopped(self):
        code, printed, _ = run("yes")
        self.assertEqual(code, 0)
        self.assertLess(len(printed), program.MAX_PRINTED + program.CHUNK)

    def test_one_that_complains_without_end_is_cut(self):
        _, _, complaints = run("head -c 20000000 /dev/zero >&2")
        self.assertLess(len(complaints), program.MAX_PRINTED + program.CHUNK)

    def test_one_that_says_nothing_is_stopped(self):
        with self.assertRaises(Failed):
            run("sleep 60", seconds=0.05)


if __name__ == "__main__":
    unittest.main()

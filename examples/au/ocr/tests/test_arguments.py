import unittest

from arguments import parse
from errors import Invalid


class Arguments(unittest.TestCase):
    def test_bad_ones_are_refused_and_never_shown(self):
        for arguments in (
            ["--colour", "hunter2"], ["hunter2"], ["--min-confidence", "hunter2"], ["--min-confidence=101"],
            ["--lang", "hunter2"], ["--lang=../eng"], ["--model-path", "/models/../hunter2.traineddata"],
            ["--model-path", "/models/hunter2.gguf"], ["--model-path", "/models/hunter2.traineddata"],
            ["--lang", "eng", "--model-path", "/models/hunter2.traineddata"],
        ):
            with self.subTest(arguments), self.assertRaises(Invalid) as raised:
                parse(arguments, {})
            self.assertNotIn("hunter2", str(raised.exception))

    def test_a_model_comes_by_its_variable_as_well(self):
        with self.assertRaisesRegex(Invalid, "Model file not found"):
            parse([], {"MODEL_PATH": "/nowhere/deu.traineddata"})


if __name__ == "__main__":
    unittest.main()

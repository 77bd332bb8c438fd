import io
import unittest

from arguments import parse
from document import MAX_BYTES, Document, reason
from errors import Encrypted, Failed, Invalid
from main import within


class Documents(unittest.TestCase):
    def test_what_is_none_is_refused(self):
        for message, stream in {"No document": b"", "Expected a PDF": b"hello", "too large": b"%PDF-" + bytes(MAX_BYTES)}.items():
            with self.subTest(message), self.assertRaisesRegex(Invalid, message):
                Document(io.BytesIO(stream))

    def test_ends_of_poppler_have_their_meaning(self):
        for code, complaints, kind in (
            (1, b"Command Line Error: Incorrect password\n", Encrypted),
            (1, b"Syntax Error: Couldn't read xref table\n", Invalid),
            (-9, b"", Failed),
        ):
            self.assertIsInstance(reason("pdfinfo", code, complaints), kind)

    def test_text_stays_within_its_bound(self):
        self.assertEqual(list(within(["a" * 10, "b" * 10, "c" * 10], 170)), ["a" * 10, "b" * 10])


class Arguments(unittest.TestCase):
    def test_bad_ones_are_refused_and_never_shown(self):
        for arguments in ["--max-pages", "hunter2"], ["--max-pages=0"], ["--max-pages=1001"], ["hunter2"], ["--layout=hunter2"]:
            with self.subTest(arguments), self.assertRaises(Invalid) as raised:
                parse(arguments)
            self.assertNotIn("hunter2", str(raised.exception))


if __name__ == "__main__":
    unittest.main()

import struct
import unittest

from errors import Invalid
from picture import MAX_BYTES, look_at


def png(width, height):
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def jpeg(*segments):
    return b"\xff\xd8" + b"".join(segments)


def segment(kind, body):
    return struct.pack(">BBH", 0xFF, kind, 2 + len(body)) + body


def frame(width, height):
    return segment(0xC2, struct.pack(">BHH", 8, height, width))


def tiff(order, tags, following=0):
    mark = b"II*\0" if order == "<" else b"MM\0*"
    body = struct.pack(order + "IH", 8, len(tags))
    for tag, kind, value in tags:
        body += struct.pack(order + "HHI", tag, kind, 1) + struct.pack(order + ("H2x" if kind == 3 else "I"), value)
    return mark + body + struct.pack(order + "I", following)


class Sizes(unittest.TestCase):
    def test_good_ones_are_taken(self):
        for name, picture in {
            "png": png(5000, 5000),
            "jpeg": jpeg(segment(0xE0, b"JFIF\0"), frame(640, 480)),
            "jpeg with fill bytes": jpeg(b"\xff\xff", segment(0xE0, b"")[1:], frame(640, 480)),
            "tiff of this order": tiff("<", [(256, 3, 900), (257, 4, 260)]),
            "tiff of that order": tiff(">", [(256, 3, 900), (257, 4, 260)]),
        }.items():
            with self.subTest(name):
                self.assertEqual(look_at(picture), [])

    def test_more_pages_are_told_of(self):
        self.assertEqual(look_at(tiff("<", [(256, 3, 9), (257, 3, 9)], following=800)), ["only the first page was read"])

    def test_bad_ones_are_refused(self):
        for message, picture in {
            "No picture": b"",
            "Expected PNG, JPEG or TIFF": b"GIF89a",
            "too large. Maximum supported: 20 MiB": png(1, 1) + bytes(MAX_BYTES),
            "25 million pixels": png(5001, 5000),
            "32767 on a side": png(32768, 1),
            "no pixels": png(0, 10),
            "breaks off": png(10, 10)[:20],
            "don't follow one another": jpeg(segment(0xE0, b"JFIF\0"), b"....", frame(1, 1)),
            "directory is too large": b"II*\0" + struct.pack("<IH", 8, 60000),
        }.items():
            with self.subTest(message), self.assertRaisesRegex(Invalid, message):
                look_at(picture)

    def test_endless_ones_end(self):
        for picture in jpeg(b"\xff" * 100_000), jpeg(segment(0xE0, b"") * 100_000), jpeg(b"\xff\xe0\0\0" * 100_000), tiff("<", []):
            with self.assertRaises(Invalid):
                look_at(picture)


if __name__ == "__main__":
    unittest.main()

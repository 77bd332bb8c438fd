"""A look at a picture before anything decodes it: its format by its bytes, and its size.

What can't be told here is left to the decoder; what is told bounds the memory that it takes.
"""

import struct

from errors import Invalid

MAX_BYTES = 20 << 20
MAX_PIXELS = 25_000_000
MAX_SIDE = 32_767  # tesseract's own limit
MAX_TAGS = 1000  # of a TIFF's directory

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
TIFF = {b"II*\0": "<", b"MM\0*": ">"}
WIDTH, HEIGHT, SHORT, LONG = 256, 257, 3, 4  # a TIFF's tags and types


def look_at(picture):
    """Raise Invalid for what isn't a picture that can be read; return what to warn of."""
    if len(picture) > MAX_BYTES:
        raise Invalid(f"Picture too large. Maximum supported: {MAX_BYTES >> 20} MiB")
    try:
        width, height, warnings = measure(picture)
    except struct.error:
        raise Invalid("Invalid picture. It breaks off before it says how large it is") from None
    if width < 1 or height < 1:
        raise Invalid("Invalid picture. It has no pixels")
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise Invalid(f"Picture too large. Maximum supported: {MAX_PIXELS // 1_000_000} million pixels, {MAX_SIDE} on a side")
    return warnings


def measure(picture):
    """Return width, height and warnings."""
    if picture.startswith(PNG):
        return (*struct.unpack_from(">4s2I", picture, 12)[1:], [])
    if picture.startswith(JPEG):
        return (*jpeg_size(picture), [])
    if picture[:4] in TIFF:
        return tiff_size(picture, TIFF[picture[:4]])
    raise Invalid("Invalid picture. Expected PNG, JPEG or TIFF" if picture else "No picture. Expected PNG, JPEG or TIFF on stdin")


def jpeg_size(picture):
    """Go from segment to segment until the one that starts the frame."""
    at = 2
    while True:
        mark, kind, length = struct.unpack_from(">BBH", picture, at)
        if mark != 0xFF:
            raise Invalid("Invalid picture. Its JPEG segments don't follow one another")
        if kind == 0xFF:  # a fill byte
            at += 1
        elif 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", picture, at + 5)
            return width, height
        else:
            at += 2 + max(length, 2)


def tiff_size(picture, order):
    """Read the first page's directory."""
    (start,) = struct.unpack_from(order + "I", picture, 4)
    (count,) = struct.unpack_from(order + "H", picture, start)
    if count > MAX_TAGS:
        raise Invalid("Invalid picture. Its TIFF directory is too large")
    sizes = {}
    for n in range(count):
        tag, kind, _ = struct.unpack_from(order + "HHI", picture, start + 2 + 12 * n)
        if tag in (WIDTH, HEIGHT) and kind in (SHORT, LONG):
            (sizes[tag],) = struct.unpack_from(order + ("H" if kind == SHORT else "I"), picture, start + 10 + 12 * n)
    (following,) = struct.unpack_from(order + "I", picture, start + 2 + 12 * count)
    return sizes.get(WIDTH, 0), sizes.get(HEIGHT, 0), ["only the first page was read"] if following else []

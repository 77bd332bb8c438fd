"""A PDF, and what poppler's programs say of it."""

import os
import time

from errors import Encrypted, Failed, Invalid
from program import run

MAX_BYTES = 50 << 20
SECONDS = 100  # for all programs together
MAX_TITLE = 1000  # characters
MAGIC = b"%PDF-"
CHUNK = 1 << 20


class Document:
    """A document in memory, as a file without a name: poppler wants to go to and fro in it."""

    def __init__(self, stream):
        self._deadline = time.monotonic() + SECONDS
        self._file = os.memfd_create("document")
        size = 0
        while chunk := stream.read(min(CHUNK, MAX_BYTES + 1 - size)):
            if size == 0 and not chunk.startswith(MAGIC):
                raise Invalid("Invalid document. Expected a PDF")
            size += len(chunk)
            if size > MAX_BYTES:
                raise Invalid(f"Document too large. Maximum supported: {MAX_BYTES >> 20} MiB")
            write(self._file, chunk)
        if size == 0:
            raise Invalid("No document. Expected a PDF on stdin")

    def describe(self):
        """Return the title and the number of pages."""
        known = {}
        for line in self._run("pdfinfo", "-enc", "UTF-8", "-").splitlines():
            name, _, value = line.partition(":")
            known[name] = value.strip()  # a title with line breaks comes before the true Pages
        pages = known.get("Pages", "")
        if not pages.isascii() or not pages.isdecimal() or len(pages) > 10:
            raise Invalid("Invalid document. It doesn't say how many pages it has")
        return known.get("Title", "")[:MAX_TITLE], int(pages)

    def texts(self, count, layout):
        """Return the texts of that many pages; pdftotext ends each with a form feed."""
        if count == 0:
            return []
        options = ["-layout"] if layout else []
        printed = self._run("pdftotext", "-enc", "UTF-8", "-l", str(count), *options, "-", "-")
        return [text.strip("\n") for text in printed.split("\f")[:-1][:count]]

    def _run(self, *command):
        os.lseek(self._file, 0, os.SEEK_SET)
        code, printed, complaints = run(command, self._file, self._deadline)
        if code != 0:
            raise reason(command[0], code, complaints)
        return printed.decode("utf-8", "replace")


def write(file, chunk):
    while chunk:
        chunk = chunk[os.write(file, chunk):]


def reason(program, code, complaints):
    """Return what a program's end means; its own words may have the document's in them."""
    if b"Incorrect password" in complaints:
        return Encrypted("The document is encrypted. It opens with its password alone")
    if code < 0:
        return Failed(f"{program} was killed by signal {-code}. The memory may not be enough for this document")
    return Invalid("Invalid document. It is damaged, or no PDF that can be read")

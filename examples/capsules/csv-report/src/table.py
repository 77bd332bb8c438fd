"""A CSV file of unknown dialect and encoding, read row by row."""

import codecs
import csv

import aod

SAMPLE_BYTES = 64 * 1024
MAX_COLUMNS = 500
DELIMITERS = ",;\t|"
BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class Table:
    def __init__(self, path):
        self._path = path
        self.encoding = sniff_encoding(path)
        self.delimiter = sniff_delimiter(self._sample())
        # Where the comma is free, it may be the decimal one: 1,5.
        self.decimal_comma = self.delimiter != ","
        self.header = unique_names(next(self._records(), (0, []))[1])
        if not self.header:
            raise aod.CapsuleError("the table is empty")
        if len(self.header) > MAX_COLUMNS:
            raise aod.CapsuleError(f"the table has {len(self.header)} columns, more than {MAX_COLUMNS}")

    def index(self, name):
        """Return where the column stands."""
        if name not in self.header:
            raise aod.CapsuleError(f"there is no column {name[:100]!r}; there are: {', '.join(self.header)[:500]}")
        return self.header.index(name)

    def rows(self):
        """Yield the rows under the header; missing fields at the end are empty."""
        width = len(self.header)
        records = self._records()
        next(records)
        for line, row in records:
            if len(row) > width:
                raise aod.CapsuleError(f"line {line} has {len(row)} fields, the header has {width}")
            yield row + [""] * (width - len(row))

    def _records(self):
        with self._open() as file:
            reader = csv.reader(file, delimiter=self.delimiter, skipinitialspace=True, strict=True)
            try:
                for row in reader:
                    if any(field.strip() for field in row):
                        yield reader.line_num, row
            except csv.Error as error:
                raise aod.CapsuleError(f"line {reader.line_num} isn't CSV: {error}") from None
            except UnicodeError:
                raise aod.CapsuleError(f"near line {reader.line_num} the file is not {self.encoding}") from None

    def _open(self):
        return open(self._path, encoding=self.encoding, errors="strict", newline="")

    def _sample(self):
        with self._open() as file:
            try:
                return file.read(SAMPLE_BYTES)
            except UnicodeError:
                raise aod.CapsuleError(f"the file is not {self.encoding}") from None


def sniff_encoding(path):
    """Return the encoding: as a byte order mark says, else UTF-8, else Latin-1."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open(path, "rb") as file:
        chunk = file.read(SAMPLE_BYTES)
        for mark, encoding in BOMS:
            if chunk.startswith(mark):
                return encoding
        encoding = "utf-8"
        while chunk:
            if b"\0" in chunk:
                raise aod.CapsuleError("the file isn't text")
            if encoding == "utf-8" and not decodes(decoder, chunk):
                encoding = "latin-1"
            chunk = file.read(SAMPLE_BYTES)
    return encoding


def decodes(decoder, chunk):
    try:
        decoder.decode(chunk)
        return True
    except UnicodeDecodeError:
        return False


def sniff_delimiter(sample):
    """Return the delimiter that cuts most lines into as many fields as the first."""
    return max(DELIMITERS, key=lambda delimiter: evenness(sample, delimiter))


def evenness(sample, delimiter):
    lines = sample.splitlines()[:50]
    try:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return (0, 0)
    if not widths or widths[0] == 1:
        return (0, 0)
    return (sum(width == widths[0] for width in widths), widths[0])


def unique_names(header):
    names = []
    for index, field in enumerate(header):
        name = field.strip() or f"column {index + 1}"
        while name in names:
            name += "'"
        names.append(name)
    return names

"""Calls to the capsules that read files, all at once."""

import aod

from .sections import of_image, of_pdf, of_table

MAX_REASON = 300  # characters
IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"BM", b"GIF8", b"RIFF")


class Source:
    """A file, and how to have it read: the capsule, its arguments, what to make of its result."""

    def __init__(self, name, capsule, field, make, **args):
        self.name = name
        self._capsule, self._field, self._make, self._args = capsule, field, make, args

    def start(self):
        return aod.start(self._capsule, self._args, files={self._field: aod.input_path(self.name)})

    def section(self, result):
        return self._make(self.name, result)


class Unreadable(Source):
    """A file that no capsule is asked to read."""

    def __init__(self, name):
        self.name = name

    def start(self):
        raise aod.CapsuleError("it is neither a PDF nor an image")


def sources(payload):
    """Return the input's files in the order of the brief."""
    language = {"language": payload["language"]} if "language" in payload else {}
    documents = [document(name, language) for name in payload["documents"]]
    return documents + [Source(name, "csv-report", "table", of_table) for name in payload["tables"]]


def document(name, language):
    # What a file is stands in its first bytes: its name is only what somebody called it.
    with open(aod.input_path(name), "rb") as file:
        head = file.read(1024)
    if b"%PDF-" in head:
        return Source(name, "pdf-text", "document", of_pdf)
    if head.startswith(IMAGES):
        return Source(name, "ocr", "image", of_image, **language)
    return Unreadable(name)


def read_all(asked):
    """Return the sections, and (file, reason) of what could not be read, in the order asked."""
    calls, outcomes = {}, {}
    for index, source in enumerate(asked):
        try:
            calls[source.start()] = index
        except aod.CapsuleError as error:
            outcomes[index] = error
    for call in aod.as_completed(calls):
        index = calls[call]
        outcomes[index] = outcome(asked[index], call)
        aod.progress(percent=90 * len(outcomes) / len(asked), step="reading")
    return sort_out(asked, outcomes)


def outcome(source, call):
    """Return the section that a call came to, or its error."""
    try:
        return source.section(call.result())
    except aod.HandoffError as error:
        return error


def sort_out(asked, outcomes):
    sections, failed = [], []
    for index, source in enumerate(asked):
        if isinstance(outcomes[index], Exception):
            failed.append((source.name, reason(outcomes[index])[:MAX_REASON]))
        else:
            sections.append(outcomes[index])
    return sections, failed


def reason(error):
    """Return what the reader of a brief wants to know: of a callee's failure, its own words."""
    return error.message if isinstance(error, aod.HandoffError) else str(error)

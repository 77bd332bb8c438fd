import subprocess

import aod

TEXT = "document.txt"
MAX_PAGES = 200
SHOWN = 2000  # characters of a page that stand in the result; the file has all


def execute(payload: dict) -> dict:
    document = aod.input_path(payload["document"])
    facts = describe(document)
    if int(facts["Pages"]) > MAX_PAGES:
        raise aod.CapsuleError(f"the document has {facts['Pages']} pages, more than {MAX_PAGES}")
    extract(document, payload["layout"])
    pages = [page(number, text) for number, text in enumerate(read_pages(), start=1)]
    aod.log(f"{len(pages)} pages")
    return {"title": facts.get("Title", ""), "pages": pages, "text": TEXT}


def describe(document):
    """Return what pdfinfo says, by name."""
    known = {}
    for line in poppler("pdfinfo", "-enc", "UTF-8", document).split("\n"):
        name, _, value = line.partition(":")
        if name in ("Title", "Pages"):
            known[name] = value.strip()
    if not known.get("Pages", "").isdecimal():
        raise aod.CapsuleError("the document doesn't say how many pages it has")
    return known


def extract(document, layout):
    options = ["-layout"] if layout else []
    poppler("pdftotext", "-enc", "UTF-8", *options, document, aod.output_path(TEXT))


def read_pages():
    """Return the pages' texts; pdftotext ends each with a form feed."""
    with open(aod.output_path(TEXT), encoding="utf-8", errors="replace", newline="\n") as file:
        return file.read().split("\f")[:-1]


def page(number, text):
    return {"number": number, "words": len(text.split()), "text": text.strip()[:SHOWN]}


def poppler(*command):
    """Run one of poppler's programs and return what it printed."""
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        aod.log(done.stderr[-1000:])
        if "Incorrect password" in done.stderr:
            raise aod.CapsuleError("the document is locked with a password")
        raise aod.CapsuleError("the document is damaged or no PDF")
    return done.stdout

import aod

from .html_page import page
from .markdown import document
from .reading import read_all, sources

BRIEF, MARKDOWN = "brief.html", "brief.md"


def execute(payload: dict) -> dict:
    asked = sources(payload)
    if not asked:
        raise aod.CapsuleError("there is nothing to read: give documents, tables or both")
    sections, failed = read_all(asked)
    if not sections:
        reasons = "; ".join(f"{file}: {reason}" for file, reason in failed)
        raise aod.CapsuleError(f"nothing could be read: {reasons}")
    aod.progress(percent=95, step="writing")
    write(BRIEF, page(payload["title"], sections, failed))
    write(MARKDOWN, document(payload["title"], sections, failed))
    return {
        "brief": BRIEF,
        "markdown": MARKDOWN,
        "sections": len(sections),
        "failed": [{"file": file, "reason": reason} for file, reason in failed],
    }


def write(name, text):
    with open(aod.output_path(name), "w", encoding="utf-8") as file:
        file.write(text)

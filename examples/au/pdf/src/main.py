"""Takes the text out of a PDF: an Agentic Unit around poppler."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # which -I leaves out

from arguments import parse
from document import Document
from errors import Complaint

MAX_TEXT = 8 << 20  # bytes of JSON, below the 10 MB that a unit may print

CARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "card.json")


def main(arguments):
    if arguments == ["--describe"]:
        with open(CARD, encoding="utf-8") as card:
            sys.stdout.write(card.read())
        return
    options = parse(arguments)
    document = Document(sys.stdin.buffer)
    json.dump(result(document, options), sys.stdout, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")


def result(document, options):
    title, count = document.describe()
    wanted = min(count, options.max_pages)
    texts = within(document.texts(wanted, options.layout), MAX_TEXT)
    pages = [{"number": number, "text": text} for number, text in enumerate(texts, start=1)]
    answer = {"title": title, "page_count": count, "pages": pages}
    if len(pages) < count:
        answer["warnings"] = [f"only the first {len(pages)} of {count} pages were read"]
    return answer


def within(texts, limit):
    """Yield texts for as long as all of them together, as JSON, stay within the limit."""
    for text in texts:
        limit -= len(json.dumps(text, ensure_ascii=False).encode("utf-8")) + 64
        if limit < 0:
            return
        yield text


def run(arguments):
    """Return the exit code; what went wrong is on stderr, and nothing of the input."""
    try:
        main(arguments)
        sys.stdout.flush()
    except Complaint as error:
        return complain(error, error.code)
    except MemoryError:
        return complain("The memory is not enough for this document", 1)
    except OSError as error:
        return complain(f"The system refused: {error.strerror}", 1)
    return 0


def complain(message, code):
    print(f"Error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

"""Reads the text in a picture: an Agentic Unit around tesseract."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # which -I leaves out

from arguments import parse
from errors import Invalid, Failed
from picture import MAX_BYTES, look_at
from tesseract import recognise
from words import regions, text_of

MAX_REGIONS = 20_000  # which are about 5 MB of JSON

CARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "card.json")


def main(arguments):
    if arguments == ["--describe"]:
        with open(CARD, encoding="utf-8") as card:
            sys.stdout.write(card.read())
        return
    options = parse(arguments, os.environ)
    picture = sys.stdin.buffer.read(MAX_BYTES + 1)
    warnings = look_at(picture)
    words = recognise(picture, options.model)
    json.dump(result(words, options, warnings), sys.stdout, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")


def result(table, options, warnings):
    found = regions(table)
    sure = [word for word in found if word.confidence * 100 >= options.min_confidence]
    if len(sure) < len(found):
        warnings.append(f"{len(found) - len(sure)} words of low confidence are left out")
    if len(sure) > MAX_REGIONS:
        warnings.append(f"{len(sure) - MAX_REGIONS} words are left out: there are more than {MAX_REGIONS}")
        sure = sure[:MAX_REGIONS]
    document = {"text": text_of(sure), "regions": [word.as_region() for word in sure], "model": options.model.label}
    return {**document, "warnings": warnings} if warnings else document


def run(arguments):
    """Return the exit code; what went wrong is on stderr, and nothing of the input."""
    try:
        main(arguments)
        sys.stdout.flush()
    except Invalid as error:
        return complain(error, 2)
    except Failed as error:
        return complain(error, 1)
    except MemoryError:
        return complain("The memory is not enough for this picture", 1)
    except OSError as error:
        return complain(f"The system refused: {error.strerror}", 1)
    return 0


def complain(message, code):
    print(f"Error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

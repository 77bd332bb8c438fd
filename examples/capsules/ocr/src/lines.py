"""Lines of text out of tesseract's table of words."""

WORD = "5"  # the level of a row that is a word
FIELDS = 12


def parse(table):
    """Return the lines in the order of reading, each with its confidence and box."""
    lines = {}
    for row in table.splitlines()[1:]:
        fields = row.split("\t")
        if len(fields) == FIELDS and fields[0] == WORD and fields[11].strip():
            lines.setdefault(tuple(fields[1:5]), []).append(word(fields))
    return [line(words) for words in lines.values()]


def word(fields):
    left, top, width, height = map(int, fields[6:10])
    return {"left": left, "top": top, "right": left + width, "bottom": top + height,
            "confidence": float(fields[10]), "text": fields[11].strip()}


def line(words):
    left, top = min(w["left"] for w in words), min(w["top"] for w in words)
    confidence = sum(w["confidence"] for w in words) / len(words)
    return {
        "text": " ".join(w["text"] for w in words),
        "confidence": round(min(100.0, max(0.0, confidence)), 2),
        "box": {
            "left": left,
            "top": top,
            "width": max(w["right"] for w in words) - left,
            "height": max(w["bottom"] for w in words) - top,
        },
    }

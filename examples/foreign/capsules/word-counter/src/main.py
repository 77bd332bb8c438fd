import os

INPUT, OUTPUT = "/io/input", "/io/output"


def execute(payload):
    with open(os.path.join(INPUT, payload["file"]), encoding="utf-8") as f:
        words = f.read().split()
    if not words:
        raise ValueError("the text has no words")
    with open(os.path.join(OUTPUT, "report.txt"), "w", encoding="utf-8") as f:
        f.write(f"{len(words)} words, the longest is {max(words, key=len)}\n")
    return {"words": len(words), "report": "report.txt"}

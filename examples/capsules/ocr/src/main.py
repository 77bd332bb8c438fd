import subprocess

import aod

from .lines import parse

SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"BM", b"GIF8", b"RIFF")


def execute(payload: dict) -> dict:
    image = aod.input_path(payload["image"])
    require_image(image)
    require_language(payload["language"])
    lines = parse(recognise(image, payload["language"]))
    aod.log(f"{len(lines)} lines")
    weights = [(line["confidence"], len(line["text"].split())) for line in lines]
    words = sum(count for _, count in weights)
    return {
        "text": "\n".join(line["text"] for line in lines),
        "confidence": round(sum(c * n for c, n in weights) / words, 2) if words else 0.0,
        "lines": lines,
    }


def require_image(path):
    # tesseract takes a text file for a list of further files to read: never give it one.
    with open(path, "rb") as file:
        if not file.read(8).startswith(SIGNATURES):
            raise aod.CapsuleError("the file isn't a PNG, JPEG, TIFF, BMP, GIF or WebP image")


def require_language(language):
    listed = subprocess.run(["tesseract", "--list-langs"], capture_output=True, text=True, check=True)
    installed = listed.stdout.split("\n")[1:]
    if language not in installed:
        raise aod.CapsuleError(f"the language {language} is not installed: add tesseract-ocr-{language} to the Dockerfile")


def recognise(path, language):
    """Return tesseract's table of words."""
    command = ["tesseract", path, "stdout", "-l", language, "tsv"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        aod.log(done.stderr[-1000:])
        raise aod.CapsuleError("the image can't be read: it is damaged, too large or of an unknown kind")
    return done.stdout

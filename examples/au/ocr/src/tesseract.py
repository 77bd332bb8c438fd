"""The program that reads."""

import os
import subprocess
from collections import namedtuple

from errors import Failed, Invalid

VERSION = "5"
DATA = f"/usr/share/tesseract-ocr/{VERSION}/tessdata"
ENDING = ".traineddata"
SECONDS = 100


class Model(namedtuple("Model", "name directory")):  # directory: None for that of the image
    @property
    def label(self):
        return f"tesseract-{VERSION}/{self.name}"


def installed():
    return {name.removesuffix(ENDING) for name in os.listdir(DATA) if name.endswith(ENDING)} - {"osd"}


def recognise(picture, model):
    """Return the table of words. The picture goes through a pipe: no file is written."""
    command = ["tesseract", "stdin", "stdout", "--tessdata-dir", model.directory or DATA, "-l", model.name,
               "-c", "tessedit_create_tsv=1", "-c", "tessedit_page_number=0"]
    try:
        done = subprocess.run(command, input=picture, capture_output=True, timeout=SECONDS, env=environment())
    except subprocess.TimeoutExpired:
        raise Failed(f"Recognition took more than {SECONDS} seconds") from None
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")
    if b"Error in pix" in done.stderr:
        raise Invalid("Invalid picture. It is damaged, cut short or of an unknown form of its format")
    if b"Failed loading language" in done.stderr:
        raise Invalid("Invalid model. tesseract can't read the file")
    raise Failed(reason(done.returncode))


def environment():
    """One thread gives the same result each time, and the sandbox has little use for more."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "OMP_THREAD_LIMIT": "1", "LC_ALL": "C.UTF-8"}


def reason(code):
    if code < 0:
        return f"Recognition was killed by signal {-code}. The memory may not be enough for this picture"
    return f"Recognition failed. tesseract exited with {code}"

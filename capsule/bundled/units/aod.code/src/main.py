"""aod.code: runs one program, and returns what it printed, its value, its error and its files."""

import contextlib
import os
import stat

from aod import code, paths

MOST_FILES = 100

_child = code.Child({})  # it starts while nobody waits for it, and ends with the sandbox


def execute(payload):
    where = os.path.join(paths.io_dir(), "output")
    given = payload.get("files", [])
    links = [link for link in map(_linked, given) if link]

    def answer(request):
        return {"value": _find(str(request.get("path")), given)}

    said, done = _child.execute(payload["code"], payload.get("timeout", code.SECONDS), answer, where, 2)
    for link in links:
        with contextlib.suppress(OSError):  # it is the program's own by now
            os.unlink(link)
    output = {name: one.text(_keep, name) for name, one in zip(("stdout", "stderr"), said)}
    if "value" in done:
        output["result"] = done.get("json", done["value"])
    files, more = _files(where)
    error = [done.get("error"), more and f"it has written more than {MOST_FILES} files: the first ones are given"]
    if any(error):
        output["error"] = "\n".join(filter(None, error))
    return {**output, "files": files}


def _linked(name):
    """Have a file of the input stand under its name in the program's directory, and return that place."""
    place = paths.output_path(name)
    with contextlib.suppress(FileExistsError):
        os.symlink(paths.input_path(name), place)
        return place


def _find(name, given):
    places = [paths.input_path(name) if name in given else None, os.path.join(paths.io_dir(), "output", name)]
    return next((place for place in places if place and os.path.isfile(place)), None)


def _keep(name, text):
    """Write what was printed to a file that isn't there yet, and return its name."""
    for number in range(MOST_FILES):
        free = f"{name}{number or ''}.txt"
        with contextlib.suppress(FileExistsError), open(paths.output_path(free), "x", encoding="utf-8") as file:
            file.write(text)
            return free
    return "that there is not"


def _files(where):
    """Return the names of the first regular files, and whether there are more."""
    found = []
    for folder, folders, names in os.walk(where):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError, UnicodeEncodeError):
                path.encode()
                if stat.S_ISREG(os.lstat(path).st_mode):
                    found.append(os.path.relpath(path, where))
            if len(found) > MOST_FILES:
                return found[:MOST_FILES], True
    return found, False

"""Files on their way to a callee: copies in /io/handoff/outgoing."""

import copy
import filecmp
import os
import shutil
import threading

from aod.paths import io_dir

_placing = threading.Lock()


def directory():
    """Return where files for callees go."""
    return os.path.join(io_dir(), "handoff", "outgoing")


def place(path):
    """Return the name under which a callee can get the file, copying it if need be.

    A file that is in the directory already is taken as it is; so is a copy of the same
    content that was made before.
    """
    path, base = os.path.abspath(os.fspath(path)), directory()
    if path.startswith(base + "/"):
        os.stat(path)  # raises what open would
        return path[len(base) + 1:]
    with _placing:
        return _copy(path, base)


def with_files(args, files):
    """Return args that name the files, which are in place then.

    A mapping of fields to paths (or lists of paths) sets these fields; dots lead into
    objects. Of a sequence of paths, each string in args that equals a path, or its last
    part, becomes the name of the copy.
    """
    if isinstance(files, (str, bytes, os.PathLike)):
        raise TypeError("files is a list of paths, or a dict of fields and paths")
    if hasattr(files, "items"):
        args = copy.deepcopy(args)
        for field, paths in files.items():
            several = isinstance(paths, (list, tuple))
            _set(args, field, [place(path) for path in paths] if several else place(paths))
        return args
    names = {}
    for path in files:
        names[os.fspath(path)] = place(path)
        names.setdefault(os.path.basename(path), names[os.fspath(path)])
    return renamed(args, names) if names else args


def _copy(path, base):
    os.makedirs(base, exist_ok=True)
    stem, extension = os.path.splitext(os.path.basename(path))
    number = 1
    while True:
        name = stem + extension if number == 1 else f"{stem}-{number}{extension}"
        target = os.path.join(base, name)
        if not os.path.lexists(target):
            break
        if os.path.isfile(target) and filecmp.cmp(path, target, shallow=False):
            return name
        number += 1
    _copy_whole(path, target)
    return name


def _copy_whole(path, target):
    draft = f"{target}.{os.getpid()}.part"
    try:
        shutil.copyfile(path, draft)
        os.rename(draft, target)
    except BaseException:
        if os.path.exists(draft):
            os.unlink(draft)
        raise


def _set(args, field, value):
    *parents, last = field.split(".")
    for part in parents:
        args = args.setdefault(part, {})
        if not isinstance(args, dict):
            raise ValueError(f"{field} leads through a value that isn't an object")
    args[last] = value


def renamed(value, names):
    """Return a value with other names in the place of those that it has."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {key: renamed(item, names) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [renamed(item, names) for item in value]
    return value

"""Where a run finds its files, and the rules for their names.

A name is relative, may have subdirectories and never leads out of its stage. The
stage's own absolute form, /io/output/x, is taken as x.
"""

import os
import stat
import sys

from aod.errors import ContractError


SANDBOX = "/run/aod/init"  # is there in every sandbox
SOCKET = "/run/aod/aod.sock"  # of the capsule API, or $AOD_SOCKET


def io_dir():
    """Return the directory of the run: /io, or $AOD_IO_DIR outside a container."""
    return os.environ.get("AOD_IO_DIR", "/io")


def capsule_dir():
    """Return the capsule's directory: that of its run.py, or $AOD_CAPSULE_DIR."""
    override = os.environ.get("AOD_CAPSULE_DIR")
    program = getattr(sys.modules["__main__"], "__file__", None)  # there is none in python -c
    return override or (os.path.dirname(os.path.abspath(program)) if program else os.getcwd())


def input_path(name):
    """Return the absolute path of the input file called name in the payload."""
    return stage_path("input", name)


def output_path(name):
    """Return the absolute path for an output file and create its directory.

    Return the same name in the result, so that the caller gets the file.
    """
    path = stage_path("output", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def workspace():
    """Return the writable scratch directory, which is gone when the run is."""
    return os.environ.get("AOD_WORKSPACE", "/workspace")


def scratch_dirs():
    """Return the directories in which a run may leave what isn't its output.

    Those of the sandbox, and nowhere else: outside there are only $AOD_SCRATCH_DIRS.
    """
    named = os.environ.get("AOD_SCRATCH_DIRS")
    if named is not None or not os.path.exists(SANDBOX):
        return [path for path in (named or "").split(":") if path]
    return [path for path in ("/tmp", "/workspace", "/dev/shm") if os.path.isdir(path)]


def stage_path(stage, name):
    """Return the absolute path of name in a stage, "input" or "output".

    Raises ContractError for a name that leads, or could lead, somewhere else.
    """
    base = os.path.join(io_dir(), stage)
    relative = name.removeprefix(base + "/")
    if not relative or "\0" in relative:
        raise ContractError(f"{name!r} isn't a name of a file")
    if relative.startswith("/") or ".." in relative.split("/"):
        raise ContractError(f"{name!r} leads out of {base}")
    return os.path.join(base, relative)


def file_problem(stage, name):
    """Say what keeps name from being a regular file of the stage; None if nothing.

    No part of the path below the stage may be a link.
    """
    try:
        path = stage_path(stage, name)
        mode = mode_without_links(path, len(io_dir()) + 1 + len(stage))
    except ContractError as error:
        return str(error)
    except (OSError, ValueError):
        return f"there is no file {name!r} in {io_dir()}/{stage}"
    if stat.S_ISLNK(mode):
        return f"{name!r} is, or lies behind, a link"
    if not stat.S_ISREG(mode):
        return f"{name!r} isn't a regular file"
    return None


def mode_without_links(path, start):
    """Return the mode of a path, or of the first link on the way to it below the start."""
    end = path.find("/", start + 1)
    while end != -1:
        mode = os.lstat(path[:end]).st_mode
        if stat.S_ISLNK(mode):
            return mode
        end = path.find("/", end + 1)
    return os.lstat(path).st_mode

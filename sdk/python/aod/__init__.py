"""The library of a Python capsule.

run.py is two lines, `import aod` and `aod.run()`; src/main.py has the logic:

    import aod

    def execute(payload: dict) -> dict:
        with open(aod.input_path(payload["source"])) as source:
            rows = source.readlines()
        if not rows:
            raise aod.CapsuleError("the file is empty")
        return {"lines": len(rows)}

run() reads /io/input.json, holds it against schema.json, calls execute, holds the
result against schema.json and writes /io/output.json. stdout and stderr are logs.

Other units that tools.yaml names are run by a handoff:

    report = aod.handoff("csv-report", {"title": "May"}, files={"source": path})
    with open(report.path("report")) as text: ...
"""

from aod.errors import CapsuleError, ContractError, HandoffError, HandoffRefused, HandoffUnavailable
from aod.paths import input_path, output_path, workspace

__all__ = [
    "CapsuleError",
    "ContractError",
    "HandoffError",
    "HandoffRefused",
    "HandoffUnavailable",
    "as_completed",
    "capsules",
    "handoff",
    "input_path",
    "log",
    "output_path",
    "progress",
    "run",
    "run_info",
    "start",
    "workspace",
]

# What asks AOD is imported when it does, so that a capsule that never asks starts fast.


def run():
    """Serve one run of the capsule whose run.py calls this, and end the process.

    Exit codes: 0 for a result; 1 for an exception or a result that breaks the
    contract; 2 for an input that breaks it; the logic's own for sys.exit(n);
    130 for SIGINT and 143 for SIGTERM. With 1, 2 and sys.exit(n) the file
    /io/output.json is {"error": {"type": ..., "message": ...}}.

    The process ends when execute has returned: threads and atexit handlers that
    the logic left behind are not waited for.
    """
    import gc

    gc.disable()  # what is loaded first stays: the bridge enables it before execute
    from aod import bridge  # here, so that logic under test needs no fastjsonschema

    bridge.run()


def log(message):
    """Write a line to the run's log at once. Never log payloads or secrets."""
    import sys

    print(message, file=sys.stderr, flush=True)


def handoff(target, args=None, /, *, files=(), timeout=None, **more):
    """Run another unit and return its Result: id, output, files, path(field).

    args, with more as further ones, is the callee's input. files are copied to where
    AOD takes them from: either a mapping of args' fields to paths (or lists of paths),
    or a list of paths that args name by the path or its last part. timeout, in seconds
    or as "90s", bounds the callee's run; by default its own limit does.

    A callee that fails is a HandoffError. A call that isn't allowed, or breaks the
    callee's contract, is a HandoffRefused. Where AOD can't be reached the call is
    repeated for five minutes, and never runs twice; then it is HandoffUnavailable.
    """
    return start(target, args, files=files, timeout=timeout, **more).result()


def start(target, args=None, /, *, files=(), timeout=None, **more):
    """Do as handoff does, but return a Handoff at once: id, result(), done(), cancel()."""
    from aod import calls

    return calls.start(target, {**(args or {}), **more}, files, timeout)


def as_completed(handoffs, timeout=None):
    """Yield each of the Handoffs when it has ended, in the order of their ends.

    Raises TimeoutError when some are still running after so many seconds.
    """
    from aod import calls

    return calls.as_completed(handoffs, timeout)


def progress(percent=None, step=None, message=None):
    """Tell whoever watches the run how far it is: 0 to 100, and two short texts.

    Progress may get lost. This never raises, and takes a second at the very most.
    """
    from aod import watch

    watch.progress(percent, step, message)


def capsules():
    """Return what this run may call: {name: {"description", "input", "output"}}."""
    from aod import watch

    return watch.capsules()


def run_info():
    """Return what AOD knows of this run: run, root, parent, unit, depth, deadline."""
    from aod import watch

    return watch.run_info()

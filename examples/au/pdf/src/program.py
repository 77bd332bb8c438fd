"""Other programs, with bounds on their time and on what they print."""

import os
import selectors
import subprocess
import time

from errors import Failed

MAX_PRINTED = 16 << 20  # bytes; a program that prints more is stopped there
CHUNK = 64 << 10


def run(command, stdin, deadline):
    """Return exit code, stdout and stderr; a program that prints too much is stopped, and its code is 0."""
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        try:
            printed, complaints = gather(process, deadline)
            full = len(printed) >= MAX_PRINTED
            return 0 if full else process.wait(), printed, complaints
        finally:
            process.kill()  # without effect on one that has ended


def gather(process, deadline):
    """Read both pipes until they end, or stdout is over its bound."""
    kept = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in kept:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map() and len(kept[process.stdout]) < MAX_PRINTED:
            ready = selector.select(max(deadline - time.monotonic(), 0))
            if not ready or time.monotonic() > deadline:
                raise Failed(f"{process.args[0]} took too long")
            for key, _ in ready:
                chunk = os.read(key.fd, CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif len(kept[key.fileobj]) < MAX_PRINTED:
                    kept[key.fileobj] += chunk
    return bytes(kept[process.stdout]), bytes(kept[process.stderr])


def environment():
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8"}

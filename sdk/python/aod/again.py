"""Another run in the same process: what one has left is taken away before the next."""

import gc
import os
import signal
import sys

from aod import invocation
from aod.paths import io_dir, scratch_dirs

COUNTING = "aod.model", "aod.address", "aod.people", "aod.calls"  # modules that number what a run does
END = "\x1eaod-end {}\x1e\n"  # the line that ends a run's part of each stream


class Origin:
    """The process as it is when its logic is loaded and no run has been in it."""

    def __init__(self):
        self._directory = os.getcwd()
        self._environment = dict(os.environ)
        self._arguments = list(sys.argv)
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._umask = _umask()
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._threads = _threads()
        self._parent = _has_children()
        self._scratch = scratch_dirs()
        self._io = io_dir()

    def end(self, run, document):
        """End a run with its result (bytes), and return whether another may follow.

        If not, nothing was given to AOD: the run has to end as one alone does.
        """
        if "aod.servers" in sys.modules:
            sys.modules["aod.servers"].end()
        if _threads() > self._threads or _has_children() and not self._parent:
            return False  # something of it goes on
        try:
            self._restore()
            for directory in self._scratch:
                _empty(directory)
            os.unlink(os.path.join(self._io, "input.json"))
            for stream in (1, 2):
                _write(stream, END.format(run).encode())
        except (OSError, ValueError, AttributeError, RecursionError):
            return False
        for name in COUNTING:
            if name in sys.modules:
                sys.modules[name].forget()
        posted = invocation.post(document)
        gc.enable()
        _collect()
        return posted

    def _restore(self):
        for stream in (sys.stdout, sys.stderr, *self._streams[1:]):
            stream.flush()
        sys.stdin, sys.stdout, sys.stderr = self._streams
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._handlers.items():
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)
        os.chdir(self._directory)
        os.umask(self._umask)
        sys.argv[:] = self._arguments
        if dict(os.environ) != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)


def _collect():
    """Collect garbage while nobody waits. An exception in a destructor is lost, and so would be
    what a signal raises there: signals wait for the end of it."""
    waiting = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
    try:
        gc.collect()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, waiting)


def _umask():
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _threads():
    """Return how many threads there are, as far as the module knows that starts them."""
    threading = sys.modules.get("threading")
    return threading.active_count() if threading else 1


def _has_children():
    """Report whether a child process is there, be it one that nobody has waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    except ChildProcessError:
        return False


def _write(stream, line):
    while line:
        line = line[os.write(stream, line):]


def _empty(directory):
    """Remove everything in a directory; links in it are never followed."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            _empty(entry.path)
            os.rmdir(entry.path)

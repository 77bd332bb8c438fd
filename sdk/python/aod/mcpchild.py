"""A server of tools as a child process: messages on its stdin and stdout, its log on stderr."""

import json
import os
import select
import signal
import subprocess
import threading
import time

from aod import mcplines, paths
from aod.errors import MCPError

LAST_WORDS = 1024  # bytes of its log that are told of a server that is dead
WORDS_SECONDS = 2  # for the rest of its log to come, when its stdout has ended
CLOSE_SECONDS = 0.5  # for what listens to it to see its end, unless a child of its own holds on
MOST_NOISE = 100  # lines of stdout that aren't messages, and are logged
NOISE_BYTES = 500  # of each


def end_group(process):
    """End a process that leads its group, and what it has started, at once."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass  # nobody is left
    process.wait()


class Child:
    """Starts a command. receive(message) and ended(why) are called by a thread of its own."""

    start_seconds = 60  # for it to say who it is

    def __init__(self, name, command, args, env, receive, ended):
        self._name = name
        self._receive = receive
        self._ended = ended
        self._words = b""
        self._noise = 0
        self._writing, self._ending = threading.Lock(), threading.Lock()
        self._over = False
        try:
            self._process = subprocess.Popen(
                [command, *args], cwd=paths.capsule_dir(), env={**os.environ, **env}, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            )
        except (OSError, ValueError) as error:
            raise MCPError("start", f"it can't be started: {error}", server=name) from None
        os.set_blocking(self._process.stdin.fileno(), False)
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._log, self._read)]
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError as error:
            self.kill()
            raise MCPError("start", f"it can't be listened to: {error}", server=name) from None

    def send(self, message, seconds):
        """Write a message. One that isn't taken in time was cut off: that ends the server."""
        rest = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        end = time.monotonic() + seconds
        if self._writing.acquire(timeout=max(seconds, 0)):
            try:
                rest = self._write(rest, end)
            except (OSError, ValueError):
                return  # it is dead, which the reader tells
            finally:
                self._writing.release()
        if rest:
            self._end(f"it hasn't read what it was told for {seconds:g} s")

    def _write(self, rest, end):
        """Write until then, and what it takes at once also after that; return what is left."""
        poll = select.poll()
        poll.register(self._process.stdin, select.POLLOUT)
        while rest and poll.poll(max(end - time.monotonic(), 0) * 1000):
            rest = rest[os.write(self._process.stdin.fileno(), rest):]
        return rest

    def kill(self):
        """End it, and what it has started, at once."""
        end_group(self._process)

    def close(self):
        """End it, and wait for the threads that listen to it."""
        self.kill()
        for thread in self._threads:
            if thread.ident:
                thread.join(CLOSE_SECONDS)
        if not any(thread.is_alive() for thread in self._threads):
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                stream.close()

    def _read(self):
        try:
            for line in mcplines.lines(self._process.stdout.fileno()):
                message = mcplines.message(line)
                if message is None:
                    self._pass_over(line)
                else:
                    self._receive(message)
            self._end(None)
        except mcplines.Breach as breach:
            self._end(str(breach))
        except (OSError, ValueError, MemoryError) as error:
            self._end(f"it can't be read: {type(error).__name__}")

    def _end(self, why):
        """Tell once that it is over: for that reason, or by itself; and its last words."""
        with self._ending:
            if self._over:
                return
            self._over = True
        if why is None:
            self._threads[0].join(WORDS_SECONDS)  # what it says last comes with its end, or just after
            why = self._how_it_ended()
        self.kill()
        words = self._words.decode("utf-8", "replace").strip()
        self._ended(f"{why}; its last words: {words}" if words else why)

    def _how_it_ended(self):
        try:
            code = self._process.wait(WORDS_SECONDS)
        except subprocess.TimeoutExpired:
            return "it closed its stdout"
        return f"it was killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"

    def _log(self):
        """Pass its stderr on to the run's log."""
        try:
            while part := os.read(self._process.stderr.fileno(), mcplines.PART_BYTES):
                self._words = (self._words + part)[-LAST_WORDS:]
                _to_log(part)
        except (OSError, ValueError):
            pass  # it, or the log, is closed

    def _pass_over(self, line):
        if self._noise > MOST_NOISE or not line.strip():
            return
        self._noise += 1
        more = b" [more of this is not logged]" if self._noise > MOST_NOISE else line[:NOISE_BYTES]
        try:
            _to_log(f"[{self._name}, no message] ".encode() + more.strip() + b"\n")
        except OSError:
            pass  # the log is closed


def _to_log(part):
    while part:
        part = part[os.write(2, part):]

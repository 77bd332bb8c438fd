"""The tool `python` of an agent: programs in a process of their own, which call the other tools as functions."""

import inspect
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

from aod import paths, schema, tools
from aod.errors import ToolError
from aod.mcpchild import end_group
from aod.toolbox import ends_the_run, told_error

NAME = "python"
SECONDS, MOST_SECONDS = 60, 600  # that a program may take
SHOWN = 8 << 10  # bytes of what it printed, from each end
KEPT = 4 << 20  # bytes of that in a file
MESSAGE = 16 << 20  # bytes of an argument or a result
JSON, DIGITS = 256 << 10, 300  # bytes of a program's value as JSON, and digits of a number in it
PARAMETERS = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "description": "The program."},
        "seconds": {"type": "integer", "minimum": 1, "maximum": MOST_SECONDS, "description": f"How long it may take; {SECONDS} without it."},
    },
    "required": ["code"],
    "additionalProperties": False,
}
ABOUT = """Runs a program in Python, in this sandbox. What it prints is shown, and the value of its last line. \
%s Files of the input lie in %s, and what is written to %s can be part of the answer; path("NAME") returns where a \
file lies that a tool returned."""
STATE = {"kept": "Variables and imports are kept for the next program.", "fresh": "Each program begins anew."}
CALLS = " Other tools are functions in it, which return their output and raise ToolError: use them in loops, and print what matters.\n"


class Code(tools.Tool):
    """The tool. Its process starts with the first program."""

    def __init__(self, known, state):
        where = os.path.join(paths.io_dir(), "input"), os.path.join(paths.io_dir(), "output")
        about = ABOUT % (STATE[state], *where)
        self._callees = {tool.name.replace("-", "_"): tool for tool in known}
        if known:
            about += CALLS + "\n".join(_signature(name, tool) for name, tool in self._callees.items())
        super().__init__({"name": NAME, "description": about, "sequential": True}, schema.document({"input": PARAMETERS}, "input"))
        self._keeps = state == "kept"
        self._child = None
        self._files = None

    def prepare(self, arguments, files):
        """Return the program and its time."""
        self._files = files
        code, seconds = arguments.get("code"), arguments.get("seconds", SECONDS)
        if not isinstance(code, str) or not code.strip():
            raise ToolError("the arguments are wrong: code has to be a program")
        if isinstance(seconds, bool) or not isinstance(seconds, int) or not 1 <= seconds <= MOST_SECONDS:
            raise ToolError(f"the arguments are wrong: seconds are from 1 to {MOST_SECONDS}")
        return code, seconds

    def run(self, arguments):
        """Run the program and return what came of it."""
        if self._child is None:
            self._child = Child({name: _doc(name, tool) for name, tool in self._callees.items()})
        child = self._child
        try:
            (said,), done = child.execute(*arguments, self._call)
            return said, done.get("value"), done.get("error") and done["error"] + child.gone * ": variables are lost"
        finally:
            if not self._keeps or child.gone:
                child.end()
                self._child = None

    def close(self):
        """End the process."""
        if self._child:
            self._child.end()

    def told(self, result, files):
        """Return the text for the model."""
        said, value, error = result
        parts = [said.text(files.keep, NAME), value and f"value: {value}", error]
        return "\n".join(part.rstrip("\n") for part in parts if part) or "it printed nothing"

    def _call(self, request):
        """Call a tool for the program, as a call of the model does, and return the answer to it."""
        if "path" in request:
            return {"value": self._files.find(str(request["path"]))}
        tool, arguments = self._callees.get(request.get("call")), request.get("arguments")
        if tool is None or not isinstance(arguments, dict):
            return {"error": f"there is no tool {str(request.get('call'))[:100]!r}"}
        try:
            return {"value": _value(tool, tool.run(tool.prepare(arguments, self._files)), self._files)}
        except Exception as error:
            if ends_the_run(error):
                raise
            return {"error": told_error(error)}


class Child:
    """The process of programs: aod.codechild."""

    def __init__(self, docs):
        self.gone = False
        self._channel, theirs = socket.socketpair()
        own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        path = os.pathsep.join(filter(None, [own, os.environ.get("PYTHONPATH")]))
        os.makedirs(paths.workspace(), exist_ok=True)
        with theirs:
            # -P: what lies in the workspace stands for none of our modules
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "aod.codechild", str(theirs.fileno())], pass_fds=[theirs.fileno()], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=paths.workspace(), env={**os.environ, "PYTHONPATH": path})
        send(self._channel, {"tools": docs})

    def execute(self, code, seconds, answer, where=None, streams=1):
        """Run a program, in a directory, and return (what it said in each stream, what came of it).

        One stream is stdout and stderr together, two are each of them. What came of it has the value of its last line as a text, as json
        where it is that, and its error.
        """
        pipes = [os.pipe() for _ in range(streams)]
        try:
            socket.send_fds(self._channel, [b"x"], [theirs for _, theirs in pipes])
        except OSError:
            for ours, _ in pipes:
                os.close(ours)
            self.gone = True
            raise ToolError("the process of the program had ended; call again") from None
        finally:
            for _, theirs in pipes:
                os.close(theirs)
        said = [Said(ours) for ours, _ in pipes]
        try:
            send(self._channel, {"code": code, "where": where})
            done = self._until_done(time.monotonic() + seconds, seconds, answer)
        except OSError:
            self.gone = True
            done = {"error": self._why()}
        finally:
            if self.gone:
                self.end()
            for one in said:
                one.close()
        return said, done

    def _why(self):
        try:
            return f"the process ended with {self._process.wait(1)}"
        except subprocess.TimeoutExpired:
            return "the process broke its connection, and was ended"

    def _until_done(self, ends, seconds, answer):
        while True:
            if not select.select([self._channel], [], [], max(ends - time.monotonic(), 0))[0]:
                self.gone = True
                return {"error": f"it was ended after {seconds} s"}
            said = receive(self._channel)
            if "done" in said:
                return said
            began = time.monotonic()
            try:
                send(self._channel, answer(said))
            except ToolError as error:
                send(self._channel, {"error": str(error)})
            ends += time.monotonic() - began  # a callee has a time of its own

    def end(self):
        """End the process, and what it has started."""
        self.gone = True
        end_group(self._process)
        self._channel.close()


class Said:
    """What a program printed: both ends of it, and up to a bound the whole."""

    def __init__(self, fd):
        self._fd = fd
        self._whole, self._tail, self._bytes = bytearray(), b"", 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with open(self._fd, "rb", buffering=0) as pipe:
            while part := pipe.read(64 << 10):
                self._bytes += len(part)
                self._whole += part[:KEPT - len(self._whole)]
                self._tail = (self._tail + part)[-SHOWN:]

    def close(self):
        """Wait for the end of what was printed; a process in the background may hold it open."""
        self._reader.join(1)

    def text(self, keep, name):
        """Return it, of a long one both ends: keep(name, text) makes a file of the whole then, and returns its name."""
        whole = bytes(self._whole)
        if self._bytes <= 2 * SHOWN:
            return whole.decode("utf-8", "replace")
        name = keep(name, whole.decode("utf-8", "replace"))
        left = self._bytes - 2 * SHOWN
        cut = f"\n[{left} bytes are left out here; the file {name} has " + ("all]\n" if self._bytes <= KEPT else f"the first {KEPT}]\n")
        return whole[:SHOWN].decode("utf-8", "replace") + cut + self._tail.decode("utf-8", "replace")


def send(channel, message):
    """Send a message: its length, and JSON. ToolError says that it is too long."""
    raw = json.dumps(message).encode()
    if len(raw) > MESSAGE:
        raise ToolError(f"it has over {MESSAGE >> 20} MiB: hand it on in a file")
    channel.sendall(struct.pack("!I", len(raw)) + raw)


def receive(channel):
    """Return a message; an OSError says that the other side is gone, or isn't one."""
    size = struct.unpack("!I", _exactly(channel, 4))[0]
    if size > MESSAGE:
        raise OSError("the message is too long")
    try:
        message = json.loads(_exactly(channel, size))
    except ValueError:
        raise OSError("the message isn't JSON") from None
    if not isinstance(message, dict):
        raise OSError("the message isn't an object")
    return message


def _exactly(channel, count):
    parts = bytearray()
    while len(parts) < count:
        part = channel.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise OSError("the other side is gone")
        parts += part
    return bytes(parts)


def _value(tool, result, files):
    """Return the result of a tool as a program takes it: JSON, with files by their names."""
    text = tool.told(result, files)
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value["output"] if isinstance(tool, tools.Capsule) else value


def _signature(name, tool):
    fields = tool.shown.get("properties") or {}
    needed = [field for field in fields if field in (tool.shown.get("required") or ())]
    rest = [f"{field}=..." for field in fields if field not in needed]
    about = inspect.cleandoc(tool.description).split("\n")[0]
    return f"- tools.{name}({', '.join(['*', *needed, *rest]) if fields else ''}): {tools.clip(about, 200)}"


def _doc(name, tool):
    return f"{_signature(name, tool)[2:]}\n\n{tool.description}\n\nArguments: {json.dumps(tool.shown)}"

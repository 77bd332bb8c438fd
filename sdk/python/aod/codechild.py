"""The process in which the tool `python` runs programs: see code.py."""

import ast
import contextlib
import json
import linecache
import os
import socket
import sys
import threading
import traceback

from aod.code import DIGITS, JSON, SHOWN, receive, send
from aod.errors import ToolError


class Tools:
    """The tools of the agent, as functions that take their arguments by name and return the output."""

    def __init__(self, channel, docs):
        self._channel = channel
        self._lock = threading.Lock()
        for name, doc in docs.items():
            setattr(self, name, self._function(name, doc))

    def _function(self, name, doc):
        def call(**arguments):
            return self.ask({"call": name, "arguments": arguments})
        call.__name__ = call.__qualname__ = name
        call.__doc__ = doc
        return call

    def ask(self, request):
        """Have the agent answer, and return the value; ToolError says what went wrong."""
        with self._lock:
            send(self._channel, request)
            answer = receive(self._channel)
        if "error" in answer:
            raise ToolError(answer["error"])
        return answer.get("value")


def main():
    """Run programs until the agent ends."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(channel.fileno(), False)
    sys.path.append(os.getcwd())
    sys.stdout.reconfigure(line_buffering=True)
    own = Tools(channel, receive(channel)["tools"])

    def path(name):
        """Return where a file of that name lies."""
        found = own.ask({"path": name})
        if found is None:
            raise FileNotFoundError(name)
        return found

    scope = {"__name__": "__main__", "tools": own, "path": path, "ToolError": ToolError}
    number = 0
    while True:
        _, fds, _, _ = socket.recv_fds(channel, 1, 2)
        if not fds:
            return
        number += 1
        _say_to(fds[0], fds[-1])
        for fd in fds:
            os.close(fd)
        program = receive(channel)
        if program["where"]:
            os.chdir(program["where"])
        done = execute(program["code"], f"<program {number}>", scope)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        _say_to(nowhere, nowhere)
        os.close(nowhere)
        send(channel, {"done": True, **done})


def execute(code, name, scope):
    """Run a program and return the value of its last line, as a text and where it is that as json, or its error."""
    linecache.cache[name] = len(code), None, code.splitlines(True), name
    try:
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), scope)
        value = eval(compile(ast.Expression(last.value), name, "eval"), scope) if last else None
        return {} if value is None else {"value": _short(repr(value)), **_as_json(value)}
    except SystemExit as error:
        return {"error": f"it ended itself with {error.code!r}"}
    except BaseException as error:
        return {"error": _short(_trace(error, name))}


def _as_json(value):
    """Return a value that JSON can say, in so many bytes, under its name."""
    try:
        text = json.dumps(value, allow_nan=False)
        return {"json": json.loads(text, parse_int=_int)} if len(text) <= JSON else {}
    except (TypeError, ValueError, RecursionError):
        return {}


def _int(digits):
    if len(digits) > DIGITS:
        raise ValueError
    return int(digits)


def _trace(error, name):
    """Return the traceback without the frames of this module."""
    told = traceback.TracebackException.from_exception(error)
    while told.stack and told.stack[0].filename != name:
        del told.stack[0]
    return "".join(told.format())


def _short(text):
    """Cut the middle out of a text that is too long."""
    return text if len(text) <= SHOWN else text[:SHOWN // 2] + "\n[...]\n" + text[-SHOWN // 2:]


def _say_to(out, err):
    os.dup2(out, 1)
    os.dup2(err, 2)


if __name__ == "__main__":
    with contextlib.suppress(OSError):  # the agent is gone
        main()

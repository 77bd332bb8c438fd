"""The handshake: a container may be started ahead of its run, and waits here for it."""

import _socket  # built in: 0.2 ms; socket, which adds nothing that is needed here, 2 ms
import os
import time

from aod.errors import CapsuleError
from aod.paths import SOCKET, io_dir

PATIENCE = 300  # seconds of trying to reach an API that is away
PAUSES = (0.05, 1)  # seconds between two tries: the first pause, the longest
ANSWER_SECONDS = 5  # for the API to go on answering, where the input is there already
POST_SECONDS = 30  # for a result to be taken
IDLE_SECONDS = 0.05  # without an answer: from then on nobody waits for what is done
HEAD_BYTES = 64 << 10  # of the answer, before its body
PART_BYTES = 64 << 10

REQUEST = b"GET /invocation HTTP/1.1\r\nHost: aod\r\nConnection: close\r\n\r\n"
POST = (
    b"POST /invocation/result HTTP/1.1\r\nHost: aod\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)


class _Lost(Exception):
    """The API wasn't reached, is ending, or went away before it had answered."""


class Unclaimed(CapsuleError):
    """No run has come for this container."""


def wait(while_idle):
    """Return when there is a run, whose input is in /io then.

    It returns the run's id where the process may serve another run after it, else None.

    That is so at once in a container that was started for its run, and wherever there is
    no capsule API, or one that knows no invocations. In one that was started ahead of its
    run nothing waits at first: while_idle is called then, and may take its time.
    """
    path = os.environ.get("AOD_SOCKET")
    if not path and not os.path.exists(SOCKET):
        return None
    pause, away = PAUSES[0], 0
    while True:
        begun = time.monotonic()
        try:
            return _ask(path or SOCKET, while_idle)
        except (_Lost, OSError):
            if _input_is_there():
                return None
        if time.monotonic() - begun > PAUSES[1]:  # it held the request: it was there until now
            pause, away = PAUSES[0], 0
        if away >= PATIENCE:
            raise Unclaimed(f"no run has come, and AOD has been away for {PATIENCE} s", exit_code=2)
        time.sleep(pause)
        away += pause
        pause = min(2 * pause, PAUSES[1])


def _input_is_there():
    return os.path.exists(os.path.join(io_dir(), "input.json"))


def _ask(path, while_idle):
    """Ask once. Whatever the answer is, but for 503, there is nothing to wait for."""
    connection = _connect(path)
    try:
        connection.sendall(REQUEST)
        status, head = _answer(_parts(connection, while_idle))
    finally:
        connection.close()
    if status == b"503":
        raise _Lost
    if status == b"200" and _field(head, b"aod-remaining").strip(b"0").isdigit():
        return _field(head, b"aod-run").decode("ascii", "replace") or None
    return None


def post(document):
    """Give AOD the result (bytes) of the run, and return whether it has it for certain."""
    try:
        connection = _connect(os.environ.get("AOD_SOCKET") or SOCKET)
        try:
            connection.settimeout(POST_SECONDS)
            connection.sendall(POST % len(document) + document)
            return _answer(_rest(connection, connection.recv(PART_BYTES)))[0] == b"204"
        finally:
            connection.close()
    except (_Lost, OSError):
        return False


def _connect(path):
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _parts(connection, while_idle):
    """Yield what comes, until the API ends it. The first part may take for ever, unless
    the input is there already."""
    connection.settimeout(IDLE_SECONDS)
    try:
        part = connection.recv(PART_BYTES)
    except TimeoutError:
        while_idle()
        connection.settimeout(ANSWER_SECONDS if _input_is_there() else None)
        part = connection.recv(PART_BYTES)
    connection.settimeout(ANSWER_SECONDS)
    yield from _rest(connection, part)


def _rest(connection, part):
    while part:
        yield part
        part = connection.recv(PART_BYTES)


def _answer(parts):
    """Return status and head of an answer that came whole. What its body says is in /io, too."""
    whole = b""
    for part in parts:
        whole += part
        if b"\r\n\r\n" in whole or len(whole) > HEAD_BYTES:
            break
    head, end, body = whole.partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split()
    if not end or len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        raise _Lost
    _take(parts, 0 if words[1] == b"204" else _length(head), len(body))
    return words[1], head


def _length(head):
    """Return the length of the body; None where it ends with the connection."""
    value = _field(head, b"content-length")
    return int(value) if value.isdigit() and len(value) < 20 else None


def _field(head, name):
    """Return the value of a header, b"" if it isn't there. The name is in lower case."""
    for line in head.split(b"\r\n")[1:]:
        field, _, value = line.partition(b":")
        if field.lower() == name:
            return value.strip()
    return b""


def _take(parts, length, taken):
    """Take the rest of the body."""
    while length is None or taken < length:
        part = next(parts, b"")
        if not part:
            break
        taken += len(part)
    if length is not None and taken < length:
        raise _Lost

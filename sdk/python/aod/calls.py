"""Handoffs: runs of other units that this run asks for."""

import collections
import contextlib
import itertools
import secrets
import select
import threading
import time
import urllib.parse

from aod import api, outgoing
from aod.errors import HandoffError, HandoffRefused, HandoffUnavailable
from aod.result import conclude

WAIT = 30  # seconds that one request waits, so that none lives for ever
TURN = 1  # the same where there are more handoffs than connections
AT_ONCE = 32  # connections of as_completed


class Handoff:
    """A handoff that was accepted. Any thread may use it."""

    def __init__(self, target, document):
        self.id = api.text(document, "handoff_id")
        self.target = target
        self._answer = document if "success" in document else None
        self._refusal = None
        if not self.id:
            raise HandoffError("AOD's answer has no handoff_id", target=target)

    def result(self, timeout=None):
        """Return the Result, waiting for it at most so many seconds.

        Raises HandoffError if the callee failed and TimeoutError if it is still
        running, which it goes on doing.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while not self._ended():
            self._await(end)
        if self._refusal:
            raise self._refusal
        return conclude(self._answer, self.target)

    def done(self):
        """Say whether it has ended."""
        if not self._ended():
            self._ask(0)
        return self._ended()

    def cancel(self):
        """Have the callee, and all below it, stopped. One that has ended is left alone."""
        if not self._ended():
            api.request("DELETE", self._path(), target=self.target)

    def _ended(self):
        return self._answer is not None or self._refusal is not None

    def _await(self, end):
        if end is None:
            return self._ask(WAIT)
        left = max(end - time.monotonic(), 0)
        try:
            self._ask(min(left, WAIT), grace=1, patience=min(left, api.PATIENCE))
        except HandoffUnavailable:
            if time.monotonic() < end:
                raise
        if not self._ended() and time.monotonic() >= end:
            raise TimeoutError(f"{self.target} is still running")

    def _ask(self, wait, grace=api.ANSWER_SECONDS, patience=api.PATIENCE):
        try:
            self._settle(*api.request("GET", self._path(wait), seconds=wait + grace, patience=patience, target=self.target))
        except HandoffRefused as refusal:
            self._refusal = refusal

    def _exchange(self, wait):
        retry = api.Retry(target=self.target)
        while True:
            try:
                return api.Exchange("GET", self._path(wait), seconds=wait + api.ANSWER_SECONDS)
            except api.Lost as error:
                retry.pause(error)

    def _receive(self, exchange):
        try:
            self._settle(*exchange.answer(self.target))
        except HandoffRefused as refusal:
            self._refusal = refusal
        except api.Lost:
            self._ask(0)

    def _settle(self, status, answer):
        if status == 200:
            self._answer = answer

    def _path(self, wait=0):
        path = "/handoff/" + urllib.parse.quote(self.id, safe="")
        return f"{path}?wait={wait:.3f}s" if wait else path

    def __repr__(self):
        return f"Handoff({self.target!r}, {self.id!r})"


class Place(threading.local):
    """Where in a conversation this thread works: the call of a tool. A run that begins anew comes by the same places."""

    name, calls = "", 0

    def enter(self, name):
        """Begin the call of a tool."""
        self.name, self.calls = name, 0

    def next(self):
        """Return the key of the next thing that is asked for here, None where there is no place."""
        self.calls += 1
        return f"{self.name}/{self.calls}" if self.name else None

    @contextlib.contextmanager
    def below(self):
        """Be at the place of something that a later attempt may leave out: it counts as one thing."""
        here = self.next() or f"kept:{next(_kept)}"
        before = self.name, self.calls
        self.enter(here)
        try:
            yield
        finally:
            self.name, self.calls = before


place = Place()
_agents, _kept = itertools.count(1), itertools.count(1)


def agent():
    """Return the place of an agent that begins."""
    return place.next() or f"agent:{next(_agents)}"


def forget():
    """Count from the start: another run begins in this process."""
    global _agents, _kept
    _agents, _kept = itertools.count(1), itertools.count(1)


def start(target, args, files, timeout, key=None):
    """See aod.start. With a key a call that succeeded in an earlier attempt of the run isn't
    made again. That of a tool's call has one, and is made where the conversation took another way."""
    body = {"target": target, "args": outgoing.with_files(args, files)}
    if timeout is not None:
        body["timeout"] = timeout if isinstance(timeout, str) else f"{timeout:.3f}s"
    here = None if key else place.next()
    try:
        return _start(target, body, key or here)
    except HandoffRefused as refusal:
        if not here or refusal.rule != "recall":
            raise
    return _start(target, body, None)


def _start(target, body, key):
    # A try after a lost answer must join the run that the first one made.
    headers = {"Idempotency-Key": key or secrets.token_hex(16)}
    path = "/handoff?wait=false&recall=true" if key else "/handoff?wait=false"
    # Before it answers, AOD copies the files.
    _, answer = api.request("POST", path, body, headers, seconds=api.PATIENCE, target=target)
    return Handoff(target, answer)


def as_completed(handles, timeout):
    """See aod.as_completed."""
    end = None if timeout is None else time.monotonic() + timeout
    handles = list(dict.fromkeys(handles))
    ended = [handle for handle in handles if handle._ended()]
    yield from ended
    waiting = collections.deque(handle for handle in handles if handle not in ended)
    asked = {}  # exchanges and their handles
    try:
        while waiting or asked:
            _ask_some(waiting, asked)
            for exchange in _answered(asked, end):
                handle = asked.pop(exchange)
                handle._receive(exchange)
                if handle._ended():
                    yield handle
                else:
                    waiting.append(handle)
    finally:
        for exchange in asked:
            exchange.close()


def _ask_some(waiting, asked):
    wait = WAIT if len(waiting) + len(asked) <= AT_ONCE else TURN
    while waiting and len(asked) < AT_ONCE:
        handle = waiting.popleft()
        asked[handle._exchange(wait)] = handle


def _answered(asked, end):
    """Return the exchanges that have an answer, waiting for the first one."""
    poll = select.poll()
    by_descriptor = {exchange.fileno(): exchange for exchange in asked}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    patience = api.ANSWER_SECONDS + WAIT if end is None else end - time.monotonic()
    events = poll.poll(max(patience, 0) * 1000)
    if events:
        return [by_descriptor[descriptor] for descriptor, _ in events]
    if end is not None:
        raise TimeoutError(f"{len(asked)} or more handoffs are still running")
    return list(asked)  # whose answers are overdue: to find the connections dead

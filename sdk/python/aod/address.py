"""Where in a flow this code runs: what the keys of its handoffs are made of.

A place has a path, such as flow/1/read#2[3]~1: the first flow that the run walks, the second
visit of its node `read`, item 3, the first try. In another attempt of the run it is the same,
so AOD knows again what was asked for there, and doesn't have it done twice.
"""

import contextlib
import contextvars
import itertools

KEY_BYTES = 255  # of a key, at most

_here = contextvars.ContextVar("aod.flow.place", default=None)


class _Place:
    def __init__(self, path):
        self.path = path
        self.calls = itertools.count(1)
        self.walks = itertools.count(1)


_root = _Place("flow")


def key():
    """Return the key of the next handoff that is made here, None outside of flows."""
    place = _here.get()
    if place is None:
        return None
    text = f"{place.path}.{next(place.calls)}"
    if len(text) <= KEY_BYTES:
        return text
    import hashlib

    return "flow/" + hashlib.sha256(text.encode()).hexdigest()


@contextlib.contextmanager
def inside(part):
    """Be at the place that the part leads to from here."""
    place = _here.get()
    token = _here.set(place and _Place(place.path + part))
    try:
        yield
    finally:
        _here.reset(token)


@contextlib.contextmanager
def below():
    """Be at the place of the next thing that is asked for here."""
    place = _here.get()
    token = _here.set(place and _Place(f"{place.path}.{next(place.calls)}"))
    try:
        yield
    finally:
        _here.reset(token)


@contextlib.contextmanager
def walk():
    """Be at the place of a flow or a node that is run from here.

    In another thread than the main one there is none: in which order threads come is chance.
    """
    place = _here.get()
    if place is None and _in_main_thread():
        place = _root
    token = _here.set(place and _Place(f"{place.path}/{next(place.walks)}"))
    try:
        yield
    finally:
        _here.reset(token)


def forget():
    """Begin to count again: the process serves another run."""
    global _root
    _root = _Place("flow")


def _in_main_thread():
    import threading

    return threading.current_thread() is threading.main_thread()

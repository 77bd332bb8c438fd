"""What a run wants to know again in a later attempt."""

import threading
import urllib.parse
import weakref

from aod import address, api, calls
from aod.errors import HandoffRefused

_turns: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # locks by key, while somebody has one
_making = threading.Lock()


def remember(key, fn):
    """See aod.remember."""
    with _turn(key), calls.place.below(), address.below():  # whether fn is called, or not
        path = "/memory?key=" + urllib.parse.quote(key, safe="")
        try:
            return api.request("GET", path)[1].get("value")
        except HandoffRefused as refusal:
            if refusal.status != 404:
                raise
        return api.request("PUT", path, {"value": fn()})[1].get("value")


def _turn(key):
    with _making:
        lock = _turns.get(key) or threading.RLock()
        _turns[key] = lock
        return lock

"""What software decides by itself: for nothing, at once, and always alike."""

import re

QUEUES = {
    "billing": {"invoice", "refund", "refunded", "charged", "payment", "price", "receipt", "vat"},
    "technical": {"error", "crash", "crashes", "bug", "broken", "slow", "timeout", "offline"},
    "account": {"password", "login", "username", "email", "locked", "profile"},
    "spam": {"lottery", "viagra", "casino", "crypto", "winner"},
}
URGENT = {"urgent", "urgently", "immediately", "asap", "emergency", "down"}


def words(text):
    return set(re.findall(r"[a-z]+", text.lower()))


def queue(text):
    """The one queue that most words point to; None where none leads."""
    found = words(text)
    scores = {name: len(found & known) for name, known in QUEUES.items()}
    best = max(scores.values())
    leaders = [name for name, score in scores.items() if score == best]
    return leaders[0] if best and len(leaders) == 1 else None


def is_urgent(text):
    return bool(words(text) & URGENT)

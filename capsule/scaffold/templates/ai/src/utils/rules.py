"""What can be told without a model."""

import re

KEYWORDS = {
    "billing": {"invoice", "refund", "charged", "payment", "price", "receipt"},
    "technical": {"error", "crash", "crashes", "bug", "broken", "slow", "timeout"},
    "account": {"password", "login", "username", "email", "locked", "profile"},
}
CATEGORIES = [*KEYWORDS, "other"]
URGENT = {"urgent", "urgently", "immediately", "asap", "emergency"}


def words(message: str) -> set:
    return set(re.findall(r"[a-z]+", message.lower()))


def category(message: str):
    """The one category that has the most keywords in the message; None where none leads."""
    found = words(message)
    scores = {name: len(found & keywords) for name, keywords in KEYWORDS.items()}
    best = max(scores.values())
    leaders = [name for name, score in scores.items() if score == best]
    return leaders[0] if best and len(leaders) == 1 else None


def is_urgent(message: str) -> bool:
    return bool(words(message) & URGENT)

"""What models think aloud before they answer: some servers leave it in the text."""

import re

_NAMES = r"(?:seed:)?(?:think(?:ing)?|thoughts?)"
_OPEN = rf"(?:<{_NAMES}(?:\s[^<>]*)?>|\[think\]|◁think▷)"
_CLOSE = rf"(?:</{_NAMES}>|\[/think\]|◁/think▷)"
_FLAGS = re.DOTALL | re.IGNORECASE
# Some servers leave the first tag out.
_BEFORE = re.compile(
    rf"\A(?:\s*{_OPEN}.*?(?:{_CLOSE}|\Z))+\s*|\A\s*(?![{{`\s])(?:(?!{_OPEN}).)*?{_CLOSE}(?=\s*[\n{{])\s*", _FLAGS,
)
_WITHIN = re.compile(rf"{_OPEN}.*?{_CLOSE}|<reasoning>.*?</reasoning>", _FLAGS)
_END = re.compile(_CLOSE, _FLAGS)


def cut(text):
    """Return a text without what was thought before it."""
    return _BEFORE.sub("", text)


def cut_all(text):
    """Return a text that holds JSON without any thought: none before it, none within, and none with half of its tags."""
    return _END.split(_WITHIN.sub("", text))[-1]

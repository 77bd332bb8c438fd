"""Regular expressions of contracts, RE2's with the letters of ECMA 262, in Python's words."""

import functools
import re

from aod.errors import ContractError

_SETS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_REST = {  # what a set leaves out, for a class in which it stands beside others
    "D": r"\x00-/:-\U0010ffff", "W": r"\x00-/:-@\[-\^`{-\U0010ffff", "S": r"\x00-\x08\x0b\x0e-\x1f!-\U0010ffff",
}
_ENDS = {"z": r"\Z", "A": r"\A", "b": r"(?a:\b)", "B": r"(?:(?a:\B)|\A\Z)"}

_LETTER = (
    r"\\u(?P<high>[Dd][89ABab][0-9A-Fa-f]{2})\\u(?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})"
    r"|\\(?:[ux]\{(?P<a>[0-9A-Fa-f]+)\}|u(?P<b>[0-9A-Fa-f]{4})|x(?P<c>[0-9A-Fa-f]{2})|c(?P<control>[A-Za-z]))"
)
_CLASS_TOKEN = re.compile(_LETTER + r"|\\(?P<escaped>.)|(?P<named>\[:)|(?P<end>\])|.", re.DOTALL)
_TOKEN = re.compile(
    _LETTER + r"|\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\(?P<escaped>.)|(?P<name>\(\?P?<(?=[A-Za-z0-9_]+>))"
    r"|(?P<flags>\(\?[A-Za-z-]*[^:A-Za-z-]?)|(?P<greedy>[*+?}]\+)|(?P<open>\[\^?)(?P<first>\]?)|(?P<literal>\{(?=,))|(?P<end>\$)|.", re.DOTALL,
)


@functools.cache
def compiled(pattern):
    """Return the expression; ContractError for one that only AOD can read."""
    try:
        return re.compile("".join(_translated(pattern)))
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        raise ContractError(f"the pattern {pattern[:200]!r} can't be used without AOD ({error}); run the unit with aod") from None


def _translated(pattern):
    at, in_class = 0, False
    while at < len(pattern):
        token = (_CLASS_TOKEN if in_class else _TOKEN).match(pattern, at)
        at, found = token.end(), {name: text for name, text in token.groupdict().items() if text is not None}
        letter = _letter(found)
        if letter is not None:
            yield re.escape(letter)
        elif in_class:
            yield _in_class(found, token[0])
            in_class = "end" not in found
        else:
            yield _outside(found, token[0])
            in_class = "open" in found


def _letter(found):
    """Return the letter that a token names by its number, None if it names none."""
    if "high" in found:
        return chr(0x10000 + (int(found["high"], 16) - 0xD800 << 10) + int(found["low"], 16) - 0xDC00)
    if "control" in found:
        return chr(ord(found["control"]) % 32)
    number = found.get("a") or found.get("b") or found.get("c")
    return number and chr(int(number, 16))


def _in_class(found, text):
    if "named" in found:
        raise ValueError("a class with a name")
    if "escaped" in found:
        return _SETS.get(text[1]) or _REST.get(text[1]) or _escaped(text[1])
    return "\\" + text if text in "[&|~" else text


def _outside(found, text):
    if "quoted" in found:
        return re.escape(found["quoted"])
    if "open" in found:
        return found["open"] + ("\\]" if found["first"] else "")
    if "name" in found:
        return "(?P<"
    if "greedy" in found or "flags" in found and text != "(?!" and set(text) - set("(?is-)"):
        raise ValueError(text)
    if "literal" in found or "end" in found:
        return r"\{" if text == "{" else r"\Z"
    if "escaped" not in found:
        return text
    if text[1] in _SETS:
        return f"[{_SETS[text[1]]}]"
    return f"[^{_SETS[text[1].lower()]}]" if text[1] in _REST else _ENDS.get(text[1]) or _escaped(text[1])


def _escaped(letter):
    if letter.isalnum() and letter not in "afnrtv":
        raise ValueError(f"the escape \\{letter}")
    return "\\" + letter

"""The formats that texts are held against without AOD, as AOD judges them."""

import datetime
import ipaddress
import re

from aod.errors import ContractError
from aod.patterns import compiled

_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SPAN = r"T(?:[0-9]+S|[0-9]+M(?:[0-9]+S)?|[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?)"
_DURATION = re.compile(rf"P(?:[0-9]+W|(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)(?:{_SPAN})?|{_SPAN})")
_HOST = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?(?:\.[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?)*")
_LOCAL = re.compile(r"""[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*|"(?:[^"\\\x00-\x1f\x7f]|\\[ -~])*\"""", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")
_RELATIVE = re.compile(r"(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_REFERENCE = re.compile(r"(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#([^#]*))?")
_ALLOWED = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|[^\x00-\x9f\ufffd]|%[0-9A-Fa-f]{2})*")
_AUTHORITY = re.compile(r"(?:[^@\[\]]*@)?(?:\[([0-9A-Fa-f:.]+|v[0-9A-Fa-f]+\.[^@\[\]]+)\]|[^:@\[\]]*)(?::[0-9]*)?")


def _is_date(text):
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.date(int(text[:4]) or 4, int(text[5:7]), int(text[8:]))  # the year 0 is a leap year, and none of Python's
    except ValueError:
        return False
    return True


def _is_time(text):
    found = _TIME.fullmatch(text)
    if not found:
        return False
    hour, minute, second, away_hours, away_minutes = (int(found[group] or 0) for group in (1, 2, 3, 5, 6))
    if hour > 23 or minute > 59 or second > 60 or away_hours > 23 or away_minutes > 59:
        return False
    away = (away_hours * 60 + away_minutes) * (-1 if found[4] == "-" else 1)
    return second < 60 or (hour * 60 + minute - away) % 1440 == 1439


def _is_moment(text):
    return len(text) > 11 and _is_date(text[:10]) and text[10] in "Tt" and _is_time(text[11:])


def _only_aod(name):
    def refuse(_text):
        raise ContractError(f"a text of the format {name} can't be judged without AOD; run the unit with aod")
    return refuse


def _is_hostname(text):
    if len(text) > 253 or not _HOST.fullmatch(text):
        return False
    if any(label.startswith("xn--") for label in text.lower().split(".")):
        _only_aod("hostname in punycode")(text)
    return True


def _is_email(text):
    local, at, host = text.rpartition("@")
    if not at or not text.isascii() or not _LOCAL.fullmatch(local):
        return False
    if not host.startswith("["):
        return _is_hostname(host)
    inner = host[1:-1]
    six = inner.startswith("IPv6:")
    return host.endswith("]") and (_is_address(6)(inner[5:]) if six else _is_address(4)(inner))


def _is_address(version):
    def holds(text):
        try:
            return "%" not in text and ipaddress.ip_address(text).version == version
        except ValueError:
            return False
    return holds


def _is_reference(text):
    scheme = _SCHEME.match(text)
    parts = _REFERENCE.fullmatch(text[scheme.end() if scheme else 0:])
    if not parts or not _ALLOWED.fullmatch(text) or re.search(r"[\[\]]", "".join(filter(None, parts.group(2, 3, 4)))):
        return False
    if not scheme and not parts[1] and ":" in parts[2].partition("/")[0]:
        return False
    authority = _AUTHORITY.fullmatch(parts[1] or "")
    return bool(authority) and (not authority[1] or authority[1][0] == "v" or _is_address(6)(authority[1]))


def _is_absolute(text):
    return bool(_SCHEME.match(text)) and _is_reference(text)


def _is_expression(text):
    compiled(text)  # what Python can't read, RE2 may: it is refused, not judged
    return "(?!" not in text


FORMATS = {
    "date": _is_date, "time": _is_time, "date-time": _is_moment, "duration": _DURATION.fullmatch,
    "email": _is_email, "hostname": _is_hostname,
    "ipv4": _is_address(4), "ipv6": _is_address(6), "uuid": _UUID.fullmatch, "regex": _is_expression,
    "uri": lambda text: text.isascii() and _is_absolute(text), "iri": _is_absolute,
    "uri-reference": lambda text: text.isascii() and _is_reference(text), "iri-reference": _is_reference,
    "idn-email": _only_aod("idn-email"), "idn-hostname": _only_aod("idn-hostname"), "uri-template": _only_aod("uri-template"),
    "json-pointer": _POINTER.fullmatch, "relative-json-pointer": _RELATIVE.fullmatch,
}

"""Dotted paths into JSON values. What is wrong with one is a LookupError."""

SHOWN = 100  # characters of a path in a message


def look_up(data, path):
    """Return what lies at the path: a name enters an object, a number a list."""
    value = data
    for name in path.split("."):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and len(name) < 10 and int(name) < len(value):
            value = value[int(name)]
        else:
            raise LookupError(f"the data has no {shown(path)}: there is no {shown(name)}")
    return value


def put(data, path, value):
    """Set what lies at the path, in objects that are made where they are missing."""
    *parents, last = path.split(".")
    for name in parents:
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            raise LookupError(f"{shown(name)} is set to a value, so that nothing can be put below it")
    if last in data:
        raise LookupError("something was put there already")
    data[last] = value


def shown(path):
    return repr(path if len(path) <= SHOWN else path[:SHOWN] + "…")

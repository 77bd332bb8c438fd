def clean(foreign):
    """Return the text without characters that control something, but for line ends."""
    return "".join(c if c == "\n" or c.isprintable() else " " for c in foreign)


def figure(cell):
    """Return a table's cell as a person writes it."""
    return cell if isinstance(cell, str) else f"{round(cell, 2):,.12g}"

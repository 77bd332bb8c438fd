"""Charts as SVG, by hand."""

import math
from html import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 56, 58
BAR_LEFT, BAR_ROW, MAX_BARS = 150, 30, 20
FILL, INK, SOFT, GRID = "#3b6ea5", "#1f2933", "#616e7c", "#e4e7eb"
TINY = 1e-90  # a span that is no span
TITLE_STYLE = ' font-size="17" font-weight="600"'


def histogram(title, label, values):
    """Draw how often values fall into each of some even steps."""
    edges, counts = bins(values)
    ticks = nice_ticks(0, max(counts))
    plot_width, plot_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    floor = TOP + plot_height
    parts = []
    for tick in ticks:
        y = floor - plot_height * tick / ticks[-1]
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, GRID))
        parts.append(text(LEFT - 10, y + 4, number(tick), anchor="end", color=SOFT))
    step = plot_width / len(counts)
    for index, count in enumerate(counts):
        height = plot_height * count / ticks[-1]
        name = f"{number(edges[index])} to {number(edges[index + 1])}: {count}"
        parts.append(bar(LEFT + index * step + 1, floor - height, step - 2, height, name))
    every = math.ceil(len(edges) / 10)
    for index in range(0, len(edges), every):
        parts.append(text(LEFT + index * step, floor + 20, number(edges[index]), anchor="middle", color=SOFT))
    parts.append(line(LEFT, floor, WIDTH - RIGHT, floor, INK))
    parts.append(text(LEFT + plot_width / 2, HEIGHT - 14, label, anchor="middle"))
    middle = TOP + plot_height / 2
    parts.append(text(20, middle, "rows", anchor="middle", extra=f' transform="rotate(-90 20 {middle:g})"'))
    return document(title, HEIGHT, parts)


def bars(title, pairs):
    """Draw one horizontal bar for each (name, value), the largest first."""
    shown = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:MAX_BARS]
    low = min([0.0] + [value for _, value in shown])
    high = max([0.0] + [value for _, value in shown])
    ticks = nice_ticks(low, high)
    height = TOP + len(shown) * BAR_ROW + 44
    scale = (WIDTH - BAR_LEFT - RIGHT - 50) / (ticks[-1] - ticks[0])

    def x_of(value):
        return BAR_LEFT + (value - ticks[0]) * scale

    floor = TOP + len(shown) * BAR_ROW + 4
    parts = []
    for tick in ticks:
        parts.append(line(x_of(tick), TOP - 4, x_of(tick), floor, GRID))
        parts.append(text(x_of(tick), floor + 20, number(tick), anchor="middle", color=SOFT))
    for index, (name, value) in enumerate(shown):
        y = TOP + index * BAR_ROW
        start, end = sorted((x_of(0), x_of(value)))
        parts.append(bar(start, y + 4, end - start, BAR_ROW - 8, f"{name}: {number(value)}"))
        parts.append(text(BAR_LEFT - 12, y + 20, name or "(none)", anchor="end"))
        parts.append(text(end + 8, y + 20, number(value), color=SOFT))
    parts.append(line(x_of(0), TOP - 4, x_of(0), floor, INK))
    return document(title, height, parts)


def bins(values):
    """Return edges, and how many values lie from each to the next."""
    low, high = min(values), max(values)
    if high - low <= max(TINY, 1e-9 * abs(high)):  # as good as one value
        middle, margin = low, max(0.5, 1e-6 * abs(low))
        low, high = middle - margin, middle + margin
    edges = nice_ticks(low, high, wanted=min(24, max(5, round(math.sqrt(len(values))))))
    counts = [0] * (len(edges) - 1)
    step = (edges[-1] - edges[0]) / len(counts)
    for value in values:
        counts[max(0, min(int((value - edges[0]) / step), len(counts) - 1))] += 1
    return edges, counts


def nice_ticks(low, high, wanted=5):
    """Return even, round numbers that reach from low or below to high or above."""
    if high - low <= TINY:
        high = low + 1.0
    span = high - low
    magnitude = 10.0 ** math.floor(math.log10(span / wanted))
    size = next(m * magnitude for m in (1, 2, 2.5, 5, 10, 20) if span / (m * magnitude) <= wanted)
    first, last = math.floor(low / size), math.ceil(high / size)
    return [index * size for index in range(first, last + 1)]


def document(title, height, parts):
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" font-family="system-ui, sans-serif" font-size="13">\n'
        f"<title>{clean(title)}</title>\n"
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n'
        f'{text(24, 32, title, extra=TITLE_STYLE, limit=70)}\n'
        f"{body}\n</svg>\n"
    )


def text(x, y, content, anchor="start", color=INK, extra="", limit=18):
    content = str(content)
    if len(content) > limit:
        content = content[: limit - 1] + "…"
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{color}"{extra}>{clean(content)}</text>'


def line(x1, y1, x2, y2, color):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"/>'


def bar(x, y, width, height, name):
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" fill="{FILL}">'
        f"<title>{clean(name)}</title></rect>"
    )


def clean(content):
    """Return the text as XML may hold it, without control characters."""
    return escape("".join(c if c.isprintable() else " " for c in content))


def number(value):
    """Return a number as an axis shows it."""
    if abs(value) >= 1e7:
        return f"{value:.3g}"
    return f"{round(value, 2):,.10g}"

"""What a brief says of each file: parts that every format has a form for."""

from typing import NamedTuple

MAX_PAGES = 10
MAX_TEXT = 1200  # characters of a page or an image
MAX_ROWS = 50  # columns of a table that are described
MAX_NAME = 100  # characters of a title or a column's name
MAX_CHART = 512 * 1024  # bytes
FIGURES = ("count", "missing", "mean", "min", "median", "max")


class Text(NamedTuple):
    heading: str  # may be empty
    text: str


class Table(NamedTuple):
    header: list
    rows: list


class Chart(NamedTuple):
    title: str
    svg: bytes


class Section(NamedTuple):
    title: str
    file: str
    about: str
    parts: list


def of_pdf(name, result):
    pages = result.output["pages"]
    parts = [Text(f"Page {page['number']}", excerpt(page["text"])) for page in pages[:MAX_PAGES] if page["text"]]
    words = sum(page["words"] for page in pages)
    about = f"{count(len(pages), 'page')}, {count(words, 'word')}"
    if len(pages) > MAX_PAGES:
        about += f"; the first {MAX_PAGES} pages are shown"
    return Section(excerpt(result.output["title"], MAX_NAME) or name, name, about, parts)


def of_image(name, result):
    text = result.output["text"]
    about = f"{count(len(text.split()), 'word')}, read with a confidence of {result.output['confidence']:.0f} %"
    return Section(name, name, about, [Text("", excerpt(text))] if text else [])


def of_table(name, result):
    columns = result.output["columns"]
    rows = [[excerpt(column["name"], MAX_NAME), column["kind"], *figures(column)] for column in columns[:MAX_ROWS]]
    about = f"{count(result.output['rows'], 'row')}, {count(len(columns), 'column')}"
    return Section(name, name, about, [Table(["column", "kind", *FIGURES], rows), *chart(name, result)])


def chart(name, result):
    with open(result.path("chart"), "rb") as file:
        svg = file.read(MAX_CHART + 1)
    return [Chart(f"Chart of {name}", svg)] if len(svg) <= MAX_CHART else []


def figures(column):
    return (column.get(figure, "") for figure in FIGURES)


def excerpt(text, limit=MAX_TEXT):
    return text if len(text) <= limit else text[: limit - 1] + "…"


def count(number, noun):
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

"""The brief as Markdown, with its charts as files beside it.

What is foreign can't be markup: it never begins a line, what has a meaning within one is
escaped, and longer texts stand in fences that they can't end.
"""

import re

import aod

from .sections import Chart, Table, Text
from .words import clean, figure

MEANING = re.compile(r"([\\`*_{}\[\]<>#|~&:@!]|(?<=www)\.)", re.IGNORECASE)


def document(title, sections, failed):
    blocks = [f"# {line(title)}"]
    for number, shown in enumerate(sections, start=1):
        blocks += f"## {line(shown.title)}", f"From {line(shown.file)}: {line(shown.about)}"
        for part in shown.parts:
            blocks += FORMS[type(part)](part, number)
    if failed:
        blocks += "## Could not be read", rows(["file", "reason"], ["---", "---"], failed)
    return "\n\n".join(blocks) + "\n"


def paragraph(part, _):
    heading = [f"### {line(part.heading)}"] if part.heading else []
    return [*heading, fenced(part.text)]


def table(part, _):
    return [rows(part.header, ["---"] * 2 + ["--:"] * (len(part.header) - 2), part.rows)]


def rows(header, alignment, body):
    lines = [map(line, header), alignment, *([line(figure(cell)) for cell in cells] for cells in body)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def image(part, number):
    name = f"charts/{number}.svg"
    with open(aod.output_path(name), "wb") as file:
        file.write(part.svg)
    return [f"![{line(part.title)}]({name})"]


def line(foreign):
    return MEANING.sub(r"\\\1", " ".join(clean(foreign).split()))


def fenced(foreign):
    text = clean(foreign)
    fence = "`" * (1 + max([2, *map(len, re.findall("`+", text))]))
    return f"{fence}text\n{text}\n{fence}"


FORMS = {Text: paragraph, Table: table, Chart: image}

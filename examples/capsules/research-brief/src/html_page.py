"""The brief as one HTML page that needs nothing else.

All that it says is foreign: texts are escaped, charts are images, in which no script
runs, and the page's policy would let nothing in.
"""

import base64
from html import escape

from .sections import Chart, Table, Text
from .words import clean, figure

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
body { max-width: 46rem; margin: 3rem auto; padding: 0 1rem; color: #1f2933; font: 16px/1.5 system-ui, sans-serif }
h1, h2 { line-height: 1.2 } h2 { margin-top: 3rem; border-top: 1px solid #e4e7eb; padding-top: 1rem }
.about { color: #616e7c } .text { white-space: pre-line } img { max-width: 100% }
table { border-collapse: collapse; font-size: 14px } th, td { padding: .25rem .6rem; border-bottom: 1px solid #e4e7eb; text-align: right }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left } .scroll { overflow-x: auto }
"""


def page(title, sections, failed):
    body = [f"<h1>{text(title)}</h1>", *map(section, sections)]
    if failed:
        body.append(missing(failed))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def section(shown):
    parts = "\n".join(FORMS[type(part)](part) for part in shown.parts)
    return f'<section>\n<h2>{text(shown.title)}</h2>\n<p class="about">From {text(shown.file)}: {text(shown.about)}</p>\n{parts}\n</section>'


def missing(failed):
    items = "\n".join(f"<li>{text(file)}: {text(reason)}</li>" for file, reason in failed)
    return f"<section>\n<h2>Could not be read</h2>\n<ul>\n{items}\n</ul>\n</section>"


def paragraph(part):
    heading = f"<h3>{text(part.heading)}</h3>\n" if part.heading else ""
    return f'{heading}<p class="text">{text(part.text)}</p>'


def table(part):
    rows = [row("th", part.header), *(row("td", cells) for cells in part.rows)]
    return '<div class="scroll"><table>\n' + "\n".join(rows) + "\n</table></div>"


def row(tag, cells):
    return "<tr>" + "".join(f"<{tag}>{text(figure(cell))}</{tag}>" for cell in cells) + "</tr>"


def image(part):
    data = base64.b64encode(part.svg).decode()
    return f'<img alt="{text(part.title)}" src="data:image/svg+xml;base64,{data}">'


def text(foreign):
    return escape(clean(foreign))


FORMS = {Text: paragraph, Table: table, Chart: image}

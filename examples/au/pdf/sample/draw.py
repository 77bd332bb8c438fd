"""Writes timetable.pdf: two pages, with a title. It needs nothing but Python."""

PAGES = [
    ["Ferry to Harlow Island", "Monday to Friday at 7:45 and 16:30", "Dogs travel free of charge"],
    ["Fares", "Adults 4.20, children 2.10"],
]


def objects():
    yield "<< /Type /Catalog /Pages 2 0 R >>"
    kids = " ".join(f"{5 + 2 * n} 0 R" for n in range(len(PAGES)))
    yield f"<< /Type /Pages /Kids [{kids}] /Count {len(PAGES)} /MediaBox [0 0 595 842] >>"
    yield "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    yield "<< /Title (The Ferry) >>"
    for n, lines in enumerate(PAGES):
        shown = " T* ".join(f"({line}) Tj" for line in lines)
        stream = f"BT /F1 14 Tf 20 TL 72 760 Td {shown} ET"
        yield f"<< /Type /Page /Parent 2 0 R /Contents {6 + 2 * n} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
        yield f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream"


document, places = b"%PDF-1.4\n", []
for number, body in enumerate(objects(), start=1):
    places.append(len(document))
    document += f"{number} 0 obj\n{body}\nendobj\n".encode("ascii")
start = len(document)
table = "".join(f"{place:010d} 00000 n \n" for place in places)
document += f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}".encode("ascii")
document += f"trailer\n<< /Size {len(places) + 1} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{start}\n%%EOF\n".encode("ascii")
with open("timetable.pdf", "wb") as file:
    file.write(document)

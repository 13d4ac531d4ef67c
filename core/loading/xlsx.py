"""XLSX through openpyxl: one page a sheet, its cells as a table, values as a person sees them."""

from __future__ import annotations

import io
from datetime import date, datetime, time
from typing import Any

from core.loading.draft import Draft, Reading
from core.loading.options import Limits
from core.loading.package import Package
from core.loading.properties import of_office


def read_xlsx(data: bytes, limits: Limits) -> Reading:
    """One document; pages are labelled "sheet NAME".

    Hidden sheets are included and named in a warning. A formula shows its stored result and, where
    none is stored, itself. Merged cells hold their text once; blank rows and columns are left out.
    """
    from openpyxl import load_workbook

    package = Package(data, limits)
    formulas = any(
        b"<f" in package.read(n) for n in package.names if n.startswith("xl/worksheets/sheet")
    )
    values = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    written = load_workbook(io.BytesIO(data), read_only=True) if formulas else values
    draft, hidden, unsolved = Draft(), [], 0
    for sheet in values.worksheets:
        draft.page(f"sheet {sheet.title}")
        draft.heading(2, sheet.title)
        if sheet.sheet_state != "visible":
            hidden.append(sheet.title)
        # Stored dimensions are often wrong: too small loses cells, too large yields a million blanks.
        sheet.reset_dimensions()
        rows = [[_shown(cell) for cell in row] for row in sheet.iter_rows()]
        if formulas:
            source = written[sheet.title]
            source.reset_dimensions()
            for row, cells in zip(rows, source.iter_rows(), strict=False):
                for column, cell in enumerate(cells):
                    if cell.data_type == "f" and not row[column]:
                        row[column] = _formula(cell.value)
                        unsolved += 1
        _write(draft, rows)
    warnings = [f"hidden sheets are included: {', '.join(hidden)}"] if hidden else []
    if unsolved:
        warnings.append(f"{unsolved} formulas have no stored result and are shown as formulas")
    return Reading([draft.finish(values.properties.title or "", of_office(package))], warnings=warnings)


def _write(draft: Draft, rows: list[list[str]]) -> None:
    """Leading rows with a single cell are captions; the first row with more is the header."""
    rows = [row for row in rows if any(row)]
    first = next((i for i, row in enumerate(rows) if sum(map(bool, row)) > 1), len(rows))
    for row in rows[:first]:
        draft.paragraph("".join(row))
    draft.table(rows[first:])


def _formula(value: Any) -> str:
    text = getattr(value, "text", value)  # array formulas come as objects
    return text if isinstance(text, str) else ""


def _shown(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "seconds")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (int, float)):
        percent = "%" in (cell.number_format or "")
        return f"{value * 100:.15g}%" if percent else f"{value:.15g}"
    return str(value)

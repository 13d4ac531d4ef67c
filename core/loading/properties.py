"""What a file says about itself (author, keywords, dates), under the same names for every format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from xml.etree.ElementTree import Element, ParseError

from core.errors import LoadError
from core.fields import listed, parse_date
from core.loading.clean import clean, one_line
from core.loading.draft import Value
from core.loading.package import Package, local

NAMES = ("author", "subject", "keywords", "created", "modified", "language")
LISTS = ("keywords", "tags", "categories")
"""Fields that are lists even where they are written in one line."""
_DATES = ("created", "modified")
_LONGEST = 1000  # characters of a value: as for the fields of records
_MOST = 100  # keywords
_YEAR = re.compile(r"\d{4}", re.ASCII)
_OFFICE = {"creator": "author", "lastModified": "modified", "date": "created"}
_MARKUP = {
    "dc.creator": "author",
    "dcterms.creator": "author",
    "dc.subject": "subject",
    "dcterms.subject": "subject",
    "keyword": "keywords",
    "news_keywords": "keywords",
    "article:tag": "keywords",
    "date": "created",
    "pubdate": "created",
    "dc.date": "created",
    "dc.date.created": "created",
    "dcterms.created": "created",
    "dcterms.issued": "created",
    "article:published_time": "created",
    "last-modified": "modified",
    "dcterms.modified": "modified",
    "dc.date.modified": "modified",
    "article:modified_time": "modified",
    "content-language": "language",
    "dc.language": "language",
    "dcterms.language": "language",
}


def properties(found: Iterable[tuple[str, str]]) -> dict[str, Value]:
    """Fields of (name, text) pairs whose names are in NAMES, in that order; other pairs are left out.

    Several authors stand in one text, keywords make a list, a date is written 2024-03-05 (the first day
    of a bare month or year) and left out where it names no day for certain.
    """
    texts: dict[str, list[str]] = {}
    for name, raw in found:
        text = one_line(clean(raw))
        if name in NAMES and text and len(text) <= _LONGEST:
            texts.setdefault(name, []).append(text)
    made: dict[str, Value] = {}
    for name in NAMES:
        parts = list(dict.fromkeys(texts.get(name, [])))
        if name in LISTS:
            made[name] = tuple(dict.fromkeys(word for part in parts for word in listed(part)))[:_MOST]
        elif name in _DATES:
            days = (parse_date(f"{part}-01" if _YEAR.fullmatch(part) else part) for part in parts)
            made[name] = next((day.isoformat() for day in days if day), "")
        else:
            made[name] = "; ".join(parts)[:_LONGEST]
    return {name: value for name, value in made.items() if value}


def of_office(package: Package) -> dict[str, Value]:
    """The core properties of a DOCX, PPTX or XLSX file; none where they are missing or damaged."""
    try:
        part = package.first("", "core-properties") or "docProps/core.xml"
        elements = package.xml(part) if part in package.names else ()
        return properties((_OFFICE.get(name, name), text) for name, text in _texts(elements))
    except (LoadError, ParseError, ValueError):
        return {}  # what describes a file must not cost its text


def of_book(package: Iterable[Element]) -> dict[str, Value]:
    """The metadata of an EPUB's package: its subjects are its keywords."""
    names = {"creator": "author", "date": "created", "subject": "keywords"}
    return properties((names.get(name, name), text) for name, text in _texts(package))


def of_markup(tags: Iterable[tuple[str, str]]) -> dict[str, Value]:
    """Of the (name, content) of a page's meta tags, names in small letters."""
    return properties((_MARKUP.get(name, name), text) for name, text in tags)


def of_pdf(values: Mapping[str, str]) -> dict[str, Value]:
    """Of a PDF's document information."""
    names = {"CreationDate": "created", "ModDate": "modified"}
    return properties((names.get(name, name.lower()), text) for name, text in values.items())


def _texts(elements: Iterable[Element]) -> Iterable[tuple[str, str]]:
    for element in elements:
        if local(element) == "meta":  # EPUB: <meta property="dcterms:modified">
            yield (element.get("property") or "").rpartition(":")[2], element.text or ""
        else:
            yield local(element), element.text or ""

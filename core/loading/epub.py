"""EPUB: the chapters in reading order (the spine), the table of contents left out."""

from __future__ import annotations

from core.errors import LoadError, PasswordNeeded
from core.loading.clean import one_line
from core.loading.draft import Draft, Reading
from core.loading.html import HtmlWriter, decode_markup
from core.loading.options import Limits
from core.loading.package import Package, local, resolve
from core.loading.properties import of_book

_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html")


def read_epub(data: bytes, limits: Limits) -> Reading:
    """One document; a chapter without a heading of its own takes its page's title as one."""
    package = Package(data, limits)
    container = package.xml("META-INF/container.xml")
    book = next((e.get("full-path") for e in container.iter() if local(e) == "rootfile"), None)
    if not book:
        raise LoadError("damaged EPUB: it does not say where its book is")
    root = package.xml(book)
    items = {e.get("id"): e for e in root.iter() if local(e) == "item"}
    order = [e.get("idref") for e in root.iter() if local(e) == "itemref"]
    spine = [items[key] for key in order if key in items]
    title = next((e.text or "" for e in root.iter() if local(e) == "title"), "")
    locked = package.read(_ENCRYPTION) if _ENCRYPTION in package.names else b""
    draft, missing = Draft(), 0
    for item in spine:
        href = item.get("href") or ""
        name = resolve(book, href)
        if "nav" in (item.get("properties") or "").split() or item.get("media-type") not in _PAGES:
            continue
        if name not in package.names:
            missing += 1
            continue
        if name.encode() in locked:
            raise PasswordNeeded("this EPUB is encrypted (DRM): upload a copy without it")
        markup = decode_markup(package.read(name), None)[0]
        _write_chapter(draft, markup, title)
    warnings = [f"{missing} chapters that the book lists are missing from the file"] if missing else []
    described = next((e for e in root if local(e) == "metadata"), ())
    return Reading([draft.finish(title, of_book(described))], warnings=warnings)


def _write_chapter(draft: Draft, markup: str, book_title: str) -> None:
    trial = HtmlWriter(Draft())
    trial.write(markup)
    if trial.wrote and not trial.wrote_heading and one_line(trial.page_title) != one_line(book_title):
        draft.heading(1, trial.page_title)
    HtmlWriter(draft).write(markup)

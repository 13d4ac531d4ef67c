"""HTML to text: what a reader of the page sees, block by block, without the page's furniture.

Written on the standard library's tokenizer: the tree builders and converters that were tried kept
navigation or markup inside words, or gave no offsets; and a tokenizer knows no nesting depth to exceed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

from core.loading.clean import one_line
from core.loading.draft import Draft, Reading
from core.loading.properties import of_markup
from core.loading.text import decode

# fmt: off
_SKIPPED = frozenset((
    "script", "style", "template", "noscript", "nav", "svg", "math", "iframe", "object", "canvas",
    "audio", "video", "select", "textarea", "button", "datalist", "dialog", "menu",
))
_VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
))
_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "head", "header",
    "hgroup", "hr", "html", "legend", "li", "main", "ol", "p", "pre", "section", "summary", "table",
    "tbody", "tfoot", "thead", "tr", "td", "th", "ul",
))
# fmt: on
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_CHARSET = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t\n\r\f]+")
_BREAK = "\x00"  # stands for <br> until blanks are collapsed; taken out of the markup before
_MOST_ROWS = 1000  # that one cell may cover
_MOST_COLUMNS = 300  # past these a cell covers one only: a few bytes must not ask for millions of cells


class HtmlWriter(HTMLParser):
    """Writes pages into a draft; `page_title` is the <title> of the last one, `described` the (name,
    content) of all meta tags and the language that a page states.

    With `only_main`, text outside <main> is left out and counted in `left_out`.
    """

    def __init__(self, draft: Draft, only_main: bool = False) -> None:
        super().__init__(convert_charrefs=True)
        self.draft = draft
        self.page_title = ""
        self.described: list[tuple[str, str]] = []
        self.left_out = 0
        self.wrote = False
        self.wrote_heading = False
        self._only_main = only_main
        self._main = 0
        self._skip: tuple[str, int] | None = None
        self._in_title = False
        self._inline: list[str] = []
        self._pre = 0
        self._heading = 0
        self._lists: list[int | None] = []
        self._marker: tuple[int, str] | None = None
        self._tables: list[_Grid] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skip:
            if tag == self._skip[0]:
                self._skip = (tag, self._skip[1] + 1)
            return
        values = dict(attrs)
        if tag in _SKIPPED or (tag not in _VOID and _is_hidden(values)):
            self._flush()
            self._skip = (tag, 1)
        elif tag == "title":
            self._in_title, self.page_title = True, ""
        elif tag == "meta":
            name = values.get("name") or values.get("property") or values.get("http-equiv") or ""
            self.described.append((name.lower(), values.get("content") or ""))
        elif tag == "br":
            self._inline.append(_BREAK)
        elif tag in _HEADINGS:
            self._flush()
            self._heading = _HEADINGS[tag]
        elif tag in _BLOCKS:
            if tag == "html":
                self.described.append(("language", values.get("lang") or values.get("xml:lang") or ""))
            self._flush()
            self._open_block(tag, values)

    def _open_block(self, tag: str, values: dict[str, str | None]) -> None:
        if tag == "main":
            self._main += 1
        elif tag == "pre":
            self._pre += 1
        elif tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            number = self._lists[-1] if self._lists else None
            if number is not None:
                self._lists[-1] = number + 1
            depth = max(len(self._lists) - 1, 0)
            self._marker = (depth, "-" if number is None else f"{number}.")
        elif tag == "table":
            self._tables.append(_Grid())
        elif self._tables and tag == "tr":
            self._tables[-1].row()
        elif self._tables and tag in ("td", "th"):
            self._tables[-1].cell(_span(values.get("colspan")), _span(values.get("rowspan")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._skip:
            name, depth = self._skip
            if tag == name:
                self._skip = (name, depth - 1) if depth > 1 else None
            return
        if tag == "title":
            self._in_title = False
        elif tag in _HEADINGS:
            self._flush()
            self._heading = 0
        elif tag in _BLOCKS:
            self._flush()
            self._close_block(tag)

    def _close_block(self, tag: str) -> None:
        if tag == "main":
            self._main = max(self._main - 1, 0)
        elif tag == "pre":
            self._pre = max(self._pre - 1, 0)
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "li":
            self._marker = None
        elif tag == "table" and self._tables:
            rows = self._tables.pop().rows
            if self._tables:
                self._tables[-1].add(" ".join(cell for row in rows for cell in row if cell))
            elif self._kept(" ".join(" ".join(row) for row in rows)):
                self.draft.table(rows)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.page_title += data
        elif not self._skip:
            self._inline.append(data)

    def write(self, markup: str) -> None:
        """Write one page; what it leaves open ends with it."""
        self.feed(_closed(markup))
        self.close()
        self._skip = None
        self._flush()
        while self._tables:
            self._close_block("table")
        self.reset()
        self._main = self._pre = self._heading = 0
        self._lists.clear()
        self._marker = None

    def _flush(self) -> None:
        raw = "".join(self._inline)
        self._inline.clear()
        if not raw:
            return
        if self._pre and not self._tables:
            text = raw.replace(_BREAK, "\n").strip("\n")
        else:
            lines = _BLANKS.sub(" ", raw.replace("\u00ad", "")).split(_BREAK)
            text = "\n".join(line.strip(" ") for line in lines).strip("\n")
        if not text.strip():
            return
        if self._tables and self._tables[-1].open:
            self._tables[-1].add(text)
        elif self._kept(text):
            if self._heading:
                self.wrote_heading = True
                self.draft.heading(self._heading, text)
            elif self._marker:
                depth, marker = self._marker
                self.draft.item(text, depth, marker)
                self._marker = None
            else:
                self.draft.paragraph(text)

    def _kept(self, text: str) -> bool:
        if self._only_main and not self._main:
            self.left_out += len(one_line(text))
            return False
        self.wrote = self.wrote or bool(text.strip())
        return True


class _Grid:
    """The cells of a table; a merged cell's text stands once, in its first place."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._held: dict[int, int] = {}  # column -> rows below that a merged cell still covers
        self._place: tuple[int, int] | None = None

    @property
    def open(self) -> bool:
        """Whether a cell has begun: text before (a caption) is no part of the grid."""
        return self._place is not None

    def row(self) -> None:
        self.rows.append([])

    def cell(self, columns: int, rows: int) -> None:
        if not self.rows:
            self.row()
        row = self.rows[-1]
        while self._held.get(len(row), 0):
            self._held[len(row)] -= 1
            row.append("")
        columns = min(columns, max(_MOST_COLUMNS - len(row), 1))
        self._place = (len(self.rows) - 1, len(row))
        for column in range(len(row), len(row) + columns):
            self._held[column] = rows - 1
        row.extend([""] * columns)

    def add(self, text: str) -> None:
        if self._place is not None and text:
            row, column = self._place
            self.rows[row][column] = f"{self.rows[row][column]} {text}".lstrip()


def _span(written: str | None) -> int:
    return min(max(int(written[:6]), 1), _MOST_ROWS) if written and written.isdecimal() else 1


def _is_hidden(values: dict[str, str | None]) -> bool:
    return (
        "hidden" in values
        or values.get("aria-hidden") == "true"
        or values.get("role") == "navigation"
        or bool(_HIDDEN.search(values.get("style") or ""))
    )


def decode_markup(data: bytes, encoding: str | None) -> tuple[str, str, list[str]]:
    """As `decode`, asking the page's own declaration before guessing."""
    if encoding is None and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-8"), "utf-8", []
        except UnicodeDecodeError:
            declared = _CHARSET.search(data[:2048])
            if declared:
                name = declared[1].decode("ascii", "replace").lower()
                # Browsers read pages that say Latin-1 as Windows-1252, and so were they written.
                name = "cp1252" if name in ("iso-8859-1", "latin1", "latin-1", "us-ascii") else name
                try:
                    return data.decode(name), name, []
                except (LookupError, ValueError):
                    pass
    return decode(data, encoding)


def read_html(data: bytes, encoding: str | None) -> Reading:
    """One document: text of <main> where the page has one, else all but navigation and scripts."""
    markup, name, warnings = decode_markup(data, encoding)
    writer = _write(markup, only_main=True) if re.search(r"<main[\s>]", markup, re.IGNORECASE) else None
    if writer is None or not writer.wrote:
        writer = _write(markup, only_main=False)
    if writer.left_out:
        warnings = [*warnings, f"{writer.left_out:,} characters outside the page's <main> were left out"]
    parsed = writer.draft.finish()
    # "Leave and pay | Example intranet" holds the site's name: the page's own heading says it better.
    title = parsed.title if parsed.title in one_line(writer.page_title) else one_line(writer.page_title)
    title = title or one_line(writer.page_title)
    return Reading([replace(parsed, title=title, metadata=of_markup(writer.described))], name, warnings)


def _write(markup: str, only_main: bool) -> HtmlWriter:
    writer = HtmlWriter(Draft(), only_main)
    writer.write(markup)
    return writer


def _closed(markup: str) -> str:
    """The markup without comments, sections and tags that open and never close.

    The tokenizer looks for the end of each of them anew, which takes quadratic time on a file of
    nothing else (minutes for 100 kB). As in a browser, an open comment hides what follows.
    """
    markup = markup.replace(_BREAK, "")
    comment = markup.find("<!--", markup.rfind("-->") + 1)
    markup = markup[:comment] if comment >= 0 else markup
    for opening, closing in (("<![", "]>"), ("<", ">")):
        last = markup.rfind(closing) + 1
        markup = markup[:last] + markup[last:].replace(opening, "&lt;" + opening[1:])
    return markup

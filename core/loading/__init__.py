"""Loading: the bytes of one uploaded file → documents. Nothing is written to disk, no name is a path."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from core.errors import LimitError, LoadError
from core.loading.clean import clean, safe_name
from core.loading.draft import Parsed, Reading
from core.loading.options import MIB, Limits, LoadOptions
from core.types import Document

__all__ = [
    "SUPPORTED",
    "Limits",
    "LoadOptions",
    "Loaded",
    "check_upload",
    "clean",
    "load",
    "needs_choice",
    "safe_name",
]

# fmt: off
_CODE = (
    "bash", "c", "cc", "cfg", "cpp", "cs", "css", "go", "h", "hpp", "ini", "java", "jl", "js",
    "jsx", "kt", "lua", "m", "php", "pl", "proto", "ps1", "py", "r", "rb", "rs", "scala", "sh",
    "sql", "swift", "toml", "ts", "tsx", "vue", "xml", "yaml", "yml", "zig",
)
# fmt: on
SUPPORTED: Mapping[str, str] = MappingProxyType(
    {
        "pdf": "PDF",
        "docx": "DOCX",
        "pptx": "PPTX",
        "xlsx": "XLSX",
        "html": "HTML",
        "htm": "HTML",
        "xhtml": "HTML",
        "epub": "EPUB",
        "md": "Markdown",
        "markdown": "Markdown",
        "txt": "plain text",
        "text": "plain text",
        "log": "plain text",
        "rst": "plain text",
        "tex": "plain text",
        "csv": "CSV",
        "tsv": "TSV",
        "json": "JSON",
        "jsonl": "JSONL",
        "ndjson": "JSONL",
        **dict.fromkeys(_CODE, "source code"),
    }
)
"""Extension (lower case, no dot) → what it is called. Other extensions are read as plain text."""

_RECORDS = ("CSV", "TSV", "JSON", "JSONL")
_PDF_MARK = b"%PDF-"
_ZIP_MARK = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one file gave. Counts are over all its documents; `file_hash` is the SHA-256 of its bytes."""

    documents: tuple[Document, ...]
    file_hash: str
    format: str
    encoding: str | None
    warnings: tuple[str, ...]
    pages: int
    characters: int
    headings: int


def load(
    data: bytes,
    name: str,
    options: LoadOptions = LoadOptions(),  # noqa: B008 (frozen)
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Loaded:
    """The documents in a file's bytes; `name` gives the format by its extension and is only shown.

    Raises LoadError or one of its kinds (LimitError, PasswordNeeded) and nothing else, whatever
    the bytes are.
    """
    if len(data) > limits.file_bytes:
        raise LimitError(
            f"the file has {len(data) / MIB:,.1f} MiB; the limit is {limits.file_bytes / MIB:,.1f} MiB: "
            "split it or raise the limit"
        )
    if not data.strip():
        raise LoadError("empty file: it holds no text")
    extension = _extension(name)
    try:
        label, reading = _read(data, extension, options, limits)
    except LoadError:
        raise
    except RecursionError as error:
        raise LoadError("the file is nested too deeply to be read") from error
    except Exception as error:
        # Readers meet any bytes at all: what they do not foresee must not stop the rest of an upload.
        kind = SUPPORTED.get(extension, "text")
        raise LoadError(f"damaged file: it cannot be read as {kind} ({type(error).__name__})") from error
    return _loaded(hashlib.sha256(data).hexdigest(), safe_name(name), label, reading)


def _loaded(file_hash: str, name: str, label: str, reading: Reading) -> Loaded:
    found = [parsed for parsed in reading.parsed if parsed.text.strip()]
    if not found:
        raise LoadError("empty file: it holds no text")
    documents = tuple(_document(parsed, file_hash[:16], name) for parsed in found)
    return Loaded(
        documents,
        file_hash,
        label,
        reading.encoding,
        tuple(reading.warnings),
        sum(len(document.pages) for document in documents),
        sum(len(document.text) for document in documents),
        sum(len(document.headings) for document in documents),
    )


def _document(parsed: Parsed, file_id: str, name: str) -> Document:
    record = parsed.number
    stem = os.path.splitext(_last(name))[0] or name
    return Document(
        file_id if record is None else f"{file_id}-{record}",
        name,
        parsed.title or (stem if record is None else f"{stem} #{record}"),
        parsed.text,
        parsed.headings,
        parsed.pages,
        parsed.tables,
        MappingProxyType(dict(parsed.metadata)),
        parsed.chunks,
    )


def _read(data: bytes, extension: str, options: LoadOptions, limits: Limits) -> tuple[str, Reading]:
    # Readers are imported when a file needs them: each brings its own library.
    label = SUPPORTED.get(extension, "plain text")
    encoding = options.encoding
    if options.prechunked:
        from core.loading.prechunked import read_prechunked

        return "chunks (JSONL)", read_prechunked(data, encoding)
    if label == "PDF" or data.startswith(_PDF_MARK):
        from core.loading.pdf import read_pdf

        return "PDF", read_pdf(data, options.password, limits)
    if label == "DOCX":
        from core.loading.docx import read_docx

        return label, read_docx(data, limits)
    if label == "PPTX":
        from core.loading.pptx import read_pptx

        return label, read_pptx(data, limits)
    if label == "XLSX":
        from core.loading.xlsx import read_xlsx

        return label, read_xlsx(data, limits)
    if label == "EPUB":
        from core.loading.epub import read_epub

        return label, read_epub(data, limits)
    if label == "HTML":
        from core.loading.html import read_html

        return label, read_html(data, encoding)
    if label in _RECORDS:
        from core.loading.records import read_records

        return label, read_records(data, extension, options, limits)
    if label == "Markdown":
        from core.loading.markdown import read_markdown

        return label, read_markdown(data, encoding)
    if label == "source code":
        from core.loading.code import read_code

        return label, read_code(data, encoding, extension)
    if extension not in SUPPORTED and data.startswith(_ZIP_MARK):
        raise _unsupported(extension)
    from core.loading.text import read_text

    try:
        return label, read_text(data, encoding)
    except LoadError as error:
        raise error if extension in SUPPORTED or encoding else _unsupported(extension) from error


def _unsupported(extension: str) -> LoadError:
    kinds = ", ".join(dict.fromkeys(SUPPORTED.values()))
    what = f"files of type {extension!r}" if extension else "binary files without an extension"
    return LoadError(f"{what} are not supported; supported are {kinds}")


def _extension(name: str) -> str:
    _, dot, extension = _last(name).rpartition(".")
    return extension.strip().lower() if dot else ""


def _last(name: str) -> str:
    """The last part of a name that looks like a path (a folder's files are uploaded with it)."""
    return name.replace("\\", "/").rpartition("/")[2]


def needs_choice(data: bytes, name: str) -> bool:
    """Whether to ask if each record is an item or the file one table: CSV, TSV, JSONL, JSON lists."""
    extension = _extension(name)
    if SUPPORTED.get(extension) == "JSON":
        return data[:1024].replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"[")
    return SUPPORTED.get(extension) in _RECORDS


def check_upload(sizes: list[int], limits: Limits = Limits()) -> None:  # noqa: B008 (frozen)
    """Refuse an upload as a whole: `sizes` are its files' bytes. Raises LimitError."""
    if len(sizes) > limits.files:
        raise LimitError(
            f"{len(sizes):,} files in one upload; the limit is {limits.files:,}: upload them in parts"
        )
    if sum(sizes) > limits.total_bytes:
        raise LimitError(
            f"the upload has {sum(sizes) / MIB:,.0f} MiB; the limit is {limits.total_bytes / MIB:,.0f} "
            "MiB: upload it in parts"
        )

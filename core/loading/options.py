"""What a person may set about loading: how a file is read, and how big it may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How to read one file. The password is used for that reading only: it is neither kept nor logged.

    `records`: each record of a CSV, TSV, JSON or JSONL file an item, or the whole file one table
    ("ask" reads items). `title_field` and `text_fields` name the fields of a record; without them
    they are found by their names. `prechunked`: the file holds chunks made elsewhere.
    """

    password: str | None = None
    encoding: str | None = None
    records: Literal["ask", "items", "table"] = "ask"
    title_field: str | None = None
    text_fields: tuple[str, ...] | None = None
    prechunked: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an upload; each field's `metadata["help"]` says in words what it limits."""

    file_bytes: int = field(default=50 * MIB, metadata={"help": "Largest file, in bytes."})
    unpacked_bytes: int = field(
        default=200 * MIB,
        metadata={"help": "Largest content of a DOCX, PPTX, XLSX or EPUB file once unpacked, in bytes."},
    )
    unpack_ratio: int = field(
        default=100,
        metadata={
            "help": "How many times its own size such a file may unpack to (asked only when it unpacks "
            "to more than 20 MiB)."
        },
    )
    files: int = field(default=1000, metadata={"help": "Files in one upload."})
    total_bytes: int = field(default=500 * MIB, metadata={"help": "Size of one upload, in bytes."})
    pages: int = field(default=5000, metadata={"help": "Pages of one PDF file."})
    records: int = field(
        default=200_000,
        metadata={"help": "Records of one CSV, TSV, JSON or JSONL file."},
    )

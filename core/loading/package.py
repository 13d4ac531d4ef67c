"""Files that are zip archives of XML parts (office formats, EPUB): opened safely, in memory."""

from __future__ import annotations

import io
import posixpath
import zipfile
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring

from core.errors import LimitError, LoadError, PasswordNeeded
from core.loading.options import MIB, Limits

_RELATIONSHIP = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_RATIO_FROM = 20 * MIB
_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class Package:
    """The parts of an archive, by name. Nothing is unpacked before the sizes it states are checked.

    Raises LimitError past the limits, PasswordNeeded for an encrypted office file, and LoadError
    for what is no archive.
    """

    def __init__(self, data: bytes, limits: Limits) -> None:
        if data.startswith(_COMPOUND_FILE):
            if "EncryptedPackage".encode("utf-16-le") in data:
                raise PasswordNeeded(
                    "this office file is protected with a password, which cannot be given here: "
                    "save a copy without the password and upload that"
                )
            raise LoadError("this is a file of Office 97-2003: save it as DOCX, PPTX or XLSX first")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise LoadError("damaged file: it is no readable zip archive, as its format asks") from error
        unpacked = sum(info.file_size for info in self._zip.infolist())
        if unpacked > limits.unpacked_bytes:
            raise LimitError(
                f"the file unpacks to {unpacked / MIB:,.0f} MiB; the limit is "
                f"{limits.unpacked_bytes / MIB:,.0f} MiB: split the file or raise the limit"
            )
        if unpacked > _RATIO_FROM and unpacked > limits.unpack_ratio * len(data):
            raise LimitError(
                f"the file unpacks to {unpacked / MIB:,.0f} MiB, {unpacked // len(data):,} times its "
                f"size; the limit is {limits.unpack_ratio} times: save the file anew or raise the limit"
            )
        self.names = frozenset(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """The bytes of a part; raises LoadError when it is missing."""
        try:
            return self._zip.read(name)
        except KeyError as error:
            raise LoadError(f"damaged file: its part {name!r} is missing") from error

    def xml(self, name: str) -> Element:
        """The root element of a part; entities and external references are refused."""
        root: Element = fromstring(self.read(name))
        return root

    def related(self, part: str) -> dict[str, tuple[str, str]]:
        """Relationships of a part: id -> (last word of its type, name of the part it points to)."""
        folder, base = posixpath.split(part)
        name = posixpath.join(folder, "_rels", base + ".rels")
        if name not in self.names:
            return {}
        found = {}
        for element in self.xml(name):
            if element.get("TargetMode") != "External":
                kind = (element.get("Type") or "").rsplit("/", 1)[-1]
                found[element.get("Id") or ""] = (kind, resolve(part, element.get("Target") or ""))
        return found

    def first(self, part: str, kind: str) -> str | None:
        """The name of the first part that `part` points to with a relationship of this kind."""
        targets = (name for found, name in self.related(part).values() if found == kind)
        return next((name for name in targets if name in self.names), None)


def resolve(part: str, target: str) -> str:
    """The name of the part that a reference inside `part` means; a fragment is dropped."""
    target = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(part), target)).lstrip("/")


def relationship_id(element: Element, name: str = "id") -> str:
    return element.get(_RELATIONSHIP + name) or ""


def local(element: Element) -> str:
    """The name of an element without its namespace; "" for comments."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""

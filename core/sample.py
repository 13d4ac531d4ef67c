"""The sample collection: there at the first start, and gone for good when it is deleted."""

from __future__ import annotations

from pathlib import Path

from core.collection import Collection, create, list_collections, open_collection, remember, remembered
from core.loading import LoadOptions, load
from core.protocols import Progress

SAMPLE = "Sample"
_FOLDER = Path(__file__).parent.parent / "data" / "sample"
_QUERIES = _FOLDER.parent / "sample_queries.jsonl"
_DONE = "sample"


def ensure_sample(progress: Progress | None = None) -> Collection | None:
    """The collection "Sample", filled with the project's sample documents at the first start.

    None when the person deleted it, or when the sample documents are not installed. `progress` hears
    of files. Raises LoadError or CollectionError when it cannot be made; the next call goes on there.
    """
    there = any(info.name == SAMPLE for info in list_collections())
    if remembered(_DONE):
        return open_collection(SAMPLE) if there else None
    paths = _paths()
    if not paths:
        return None
    collection = open_collection(SAMPLE) if there else create(SAMPLE)
    for done, path in enumerate(paths):
        if progress:
            progress(done, len(paths))
        data = path.read_bytes()
        collection.add(load(data, path.name, LoadOptions(records="items")), path.name, len(data))
    remember(_DONE, "done")
    return collection


def sample_files() -> list[tuple[str, bytes]]:
    """Name and bytes of each sample document; [] when they are not installed."""
    return [(path.name, path.read_bytes()) for path in _paths()]


def sample_queries() -> str:
    """The golden queries of the sample documents, as `evaluation.read_judgements` reads them; "" when they
    are not installed."""
    return _QUERIES.read_text(encoding="utf-8") if _QUERIES.is_file() else ""


def _paths() -> list[Path]:
    return sorted(path for path in _FOLDER.glob("*") if path.is_file()) if _FOLDER.is_dir() else []

"""Rankscope's engine: everything the app shows can be computed with this package alone.

Names are loaded when first used, so that `import core` does not wait for a model library.
"""

from __future__ import annotations

import importlib
from typing import Any

_PUBLIC = {
    "core.access": ("Viewer",),
    "core.chunking": ("chunk_document",),
    "core.collection": ("Collection", "list_collections", "open_collection"),
    "core.corpus": ("Corpus", "build_corpus"),
    "core.corpus.first_stage": ("FirstStage",),
    "core.embedding": ("load_embedder",),
    "core.explanation": ("explain",),
    "core.extras": ("register_index", "register_signal"),
    "core.indexes": ("BM25Index", "HnswIndex", "VectorIndex"),
    "core.loading": ("load",),
    "core.pipeline": ("Result", "Retriever", "replay", "search"),
    "core.report.export": ("settings_to_python", "trace_to_csv", "trace_to_json", "trace_to_trec"),
    "core.rules": ("Rules",),
    "core.sample": ("ensure_sample",),
    "core.settings": (
        "ChunkSettings",
        "IndexSettings",
        "IndexUse",
        "SearchSettings",
        "Settings",
        "SignalUse",
    ),
    "core.text": ("Analyzer",),
    "core.trace": ("Ranking", "Trace"),
    "core.types": ("Chunk", "Document"),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"core has no {name}; it offers {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOME[name]), name)

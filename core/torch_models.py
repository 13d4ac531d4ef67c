"""The one importer of torch, transformers and sentence-transformers: seconds, and half a gigabyte.

The functions raise whatever these libraries raise: network, hub, files, torch. `reason` makes one line of it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from core.protocols import Vectors

_THREADS = 4  # torch's threads at most: several sessions share one process


def sentence_transformer(source: str) -> Any:
    """The SentenceTransformer of a folder, or of a model id, fetched where needed."""
    _prepare()
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(source)


def cross_encoder(source: str) -> Any:
    """The CrossEncoder of a folder or model id. It gives raw logits: a sigmoid has the same order, but
    makes all clear hits and all clear misses equal to the digits that are kept."""
    torch = _prepare()
    from sentence_transformers import CrossEncoder

    return CrossEncoder(source, activation_fn=torch.nn.Identity())


def at_hand(source: str) -> bool:
    """Whether a model is a folder, or was fetched before: loading it asks nobody."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(source).is_dir() or isinstance(try_to_load_from_cache(source, "config.json"), str)
    except (HFValidationError, OSError, ValueError):  # neither a path nor an id
        return True  # so the message comes from loading it


def untrained_head(model: Any) -> bool:
    """Whether a CrossEncoder scores with weights that its files do not hold: the libraries then make up
    random ones, and only print so."""
    task = getattr(model[0], "transformer_task", "")
    named = getattr(model.config, "architectures", None) or []
    return (
        task == "sequence-classification"
        and bool(named)
        and not any(name.endswith("ForSequenceClassification") for name in named)
    )


def token_vectors(model: Any, text: str) -> Vectors:
    """Unit vectors of a text's tokens as a SentenceTransformer sees them, shape (tokens, width), special
    tokens included; past its longest input there are none."""
    made = model.encode([text], output_value="token_embeddings", prompt="", show_progress_bar=False)
    matrix = made[0].float().cpu().numpy()
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def folder_version(folder: Path) -> str:
    """Changes when the weights in a model folder change; blank for an id."""
    try:
        # Any folder can be named, the disk's root too: only a model's own is read through.
        if not any((folder / name).is_file() for name in ("config.json", "modules.json")):
            return ""
    except (OSError, ValueError):  # too long for a path, or with signs that none has
        return ""
    facts = [
        (path.relative_to(folder).as_posix(), path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]


def reason(error: Exception) -> str:
    """The first line of what an error says, to be gone on from; its kind where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _prepare() -> Any:
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.set_num_threads(max(1, min(_THREADS, os.cpu_count() or 1)))
    return torch

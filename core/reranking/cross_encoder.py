"""A sentence-transformers cross-encoder: query and text go through the model together."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core import torch_models
from core.errors import RerankError
from core.protocols import Scores
from core.types import encodable

DEFAULT_MODEL = "cross-encoder/ms-marco-MiniLM-L6-v2"
"""Small (90 MB), English, trained on MS MARCO; downloaded from its hub when it is first asked."""

_BATCH = 16  # on a GPU; a CPU is as fast with one pair at a time, and no score depends on its neighbours
_DIGITS = 6


class CrossEncoder:
    """Any CrossEncoder with one output, by model id or folder: raw logits, unbounded.

    Safe to share between threads, one at a time.
    """

    name = "cross-encoder"
    listwise = False
    paid = False

    def __init__(self, model_id: str = "") -> None:
        self.model_id = model_id or DEFAULT_MODEL
        self._model: Any = None
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """Tells apart the weights under one folder's name; blank for an id."""
        return torch_models.folder_version(Path(self.model_id))

    @property
    def fetches(self) -> bool:
        """Whether the next `scores` downloads the model."""
        return self._model is None and not torch_models.at_hand(self.model_id)

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Shape (len(texts),). Raises RerankError where the model cannot be loaded or used."""
        if not texts:
            return Scores(np.empty(0))
        pairs = [(encodable(query), encodable(text)) for text in texts]
        with self._lock:
            if self._model is None:
                self._model = self._load()
            model = self._model
            try:
                one_by_one = model.device.type == "cpu"
                given = model.predict(
                    pairs, batch_size=1 if one_by_one else _BATCH, show_progress_bar=False
                )
                cut = self._cut(pairs)
            except Exception as error:  # whatever a model's own code raises
                raise RerankError(
                    f"the reranker {self.name} ({self.model_id}) could not score {len(texts)} texts: "
                    f"{torch_models.reason(error)}; rerank fewer, or choose another model"
                ) from error
        note = f"of {cut} of {len(texts)} texts the model reads only a part" if cut else ""
        return Scores(np.asarray(given, dtype=np.float64).round(_DIGITS), note=note)

    def estimate(self, query: str, texts: Sequence[str]) -> float:
        return 0.0

    def _load(self) -> Any:
        try:
            model = torch_models.cross_encoder(self.model_id)
        except Exception as error:  # network, hub, files, torch
            raise RerankError(
                f"the reranker {self.name} cannot load its model {self.model_id!r}: "
                f"{torch_models.reason(error)}; check the id and the network connection (a model is "
                "downloaded when it is first used), or give a folder that holds one"
            ) from error
        if torch_models.untrained_head(model):
            raise RerankError(
                f"the model {self.model_id} was not trained to score pairs, so its scores would be random; "
                f"choose a cross-encoder made for ranking, such as {DEFAULT_MODEL}"
            )
        if model.num_labels != 1:
            raise RerankError(
                f"the model {self.model_id} gives {model.num_labels} numbers for a text where a reranker "
                "gives one; choose a cross-encoder made for ranking"
            )
        return model

    def _cut(self, pairs: Sequence[tuple[str, str]]) -> int:
        """How many pairs are longer than the model's longest input."""
        longest = self._model.max_seq_length
        if not longest:
            return 0
        queries, texts = zip(*pairs, strict=True)
        ids = self._model.tokenizer(list(queries), list(texts), truncation=False, verbose=False)[
            "input_ids"
        ]
        return sum(len(one) > longest for one in ids)

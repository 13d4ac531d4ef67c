"""A question and what it is to be answered from: passages of a trace, or all documents."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Literal

from core.answering.prompt import MAX_TOKENS, SYSTEM
from core.chunking.boundaries import sentences
from core.documents import Documents
from core.trace import Trace
from core.types import chunk_id, encodable, text_hash

Path = Literal["passages", "base"]

DEFAULT_MODEL = "claude-sonnet-5-5"


@dataclass(frozen=True, slots=True)
class Source:
    """One block of the request: `document`'s text from `start` to `end`, as it was when it was sent.

    `digest` is the hash of the document's whole text. `sentences` are the spans in that text which a
    citation can name; none for a whole document, where a citation names characters.
    """

    document: str
    digest: str
    title: str
    start: int
    end: int
    sentences: tuple[tuple[int, int], ...] = ()

    @property
    def id(self) -> str:
        return chunk_id(self.document, self.start, self.end)


@dataclass(frozen=True)
class Inquiry:
    """A question to a model. `texts` are those of the sources, in their order, the best first."""

    question: str
    path: Path
    model: str
    sources: tuple[Source, ...]
    texts: tuple[str, ...] = field(repr=False)

    @property
    def prefix(self) -> str:
        """Hash of what a prompt cache can hold: model, instructions and sources, without the question."""
        facts = [[one.document, one.digest, one.title, one.start, one.end] for one in self.sources]
        return hashlib.sha256(
            json.dumps([self.path, self.model, SYSTEM, MAX_TOKENS, facts]).encode()
        ).hexdigest()

    @property
    def key(self) -> str:
        """Hash of all that decides the answer: equal for the same question to the same model and sources."""
        return hashlib.sha256(json.dumps([self.prefix, self.question]).encode()).hexdigest()


def from_trace(trace: Trace, model: str = DEFAULT_MODEL, most: int = 20) -> Inquiry:
    """The trace's question, to be answered from its best passages, `most` at most.

    Raises CollectionError when a document was deleted since.
    """
    sources, texts = [], []
    for passage in trace.passages[:most]:
        document = trace.corpus.document(passage.item)
        text = encodable(document.text)
        found = tuple(sentences(text, passage.start, passage.end))
        if found:
            title = encodable(document.title or document.name)
            sources.append(
                Source(document.id, text_hash(text), title, passage.start, passage.end, found)
            )
            texts.append(text[passage.start : passage.end])
    return Inquiry(_asked(trace.query), "passages", model, tuple(sources), tuple(texts))


def from_documents(question: str, documents: Documents, model: str = DEFAULT_MODEL) -> Inquiry:
    """The question, to be answered from all documents, in their order; blank ones are left out."""
    sources, texts = [], []
    for at in range(len(documents)):
        document = documents[at]
        text = encodable(document.text)
        if text.strip():
            title = encodable(document.title or document.name)
            sources.append(Source(document.id, text_hash(text), title, 0, len(text)))
            texts.append(text)
    return Inquiry(_asked(question), "base", model, tuple(sources), tuple(texts))


def _asked(question: str) -> str:
    return encodable(question).strip()

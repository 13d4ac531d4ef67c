"""What tests of contexts share: a store, documents, and the work that is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.contextualizing.job import ContextJob, writer_client
from core.contextualizing.prompt import Span
from core.contextualizing.store import ContextStore
from core.contextualizing.work import Work, survey
from core.documents import ListedDocuments
from core.prices import Prices, load_prices
from core.settings import ContextSettings
from core.types import Document

CLAUDE = ContextSettings(writer="claude")


def make_documents(count: int, chunks: int, size: int = 400) -> tuple[ListedDocuments, list[list[Span]]]:
    """Documents that differ, and the spans of their `chunks` chunks of `size` characters."""
    documents = []
    for number in range(count):
        parts = [
            f"Report {number} part {part}. ".ljust(size - 1, "abcdefgh "[part % 8]) + "\n"
            for part in range(chunks)
        ]
        documents.append(
            Document(f"d{number}", f"report{number}.txt", f"Report {number}", "".join(parts))
        )
    spans = [[(part * size, (part + 1) * size) for part in range(chunks)] for _ in range(count)]
    return ListedDocuments(documents), spans


class Desk:
    """A store with documents, and a job over what is left to write."""

    def __init__(
        self,
        folder: Path,
        count: int = 1,
        chunks: int = 10,
        size: int = 400,
        settings: ContextSettings = CLAUDE,
    ) -> None:
        self.store = ContextStore(folder)
        self.documents, self.spans = make_documents(count, chunks, size)
        self.settings = settings
        self.prices: Prices = load_prices()

    def work(self, max_input_tokens: int | None = None) -> Work:
        return survey(self.store, self.documents, self.spans, self.settings, max_input_tokens)

    def job(self, **options: Any) -> ContextJob:
        client = options.pop("client", None) or writer_client(self.settings)
        work = options.pop("work", None) or self.work()
        return ContextJob(
            self.store, self.documents, work, self.settings, client, self.prices, **options
        )

    def run(self, **options: Any) -> ContextJob:
        """A job, run to its end."""
        job = self.job(**options)
        job.start()
        assert job.join(60), job.snapshot()
        return job

    def contexts(self, item: int = 0) -> Sequence[str]:
        return self.store.contexts_of(self.documents[item], self.spans[item], self.settings)

"""What the Evaluate page works on: a collection with its corpus, its settings and its golden queries."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.collection import Collection, DocumentsOfVersion
from core.corpus import Corpus
from core.evaluation import GoldenQuery, Judgements, JudgementStore, open_judgements
from core.settings import IndexSettings, SearchSettings, Settings
from pages.ui import links, state
from pages.ui.listing import documents_of, judgements_of
from pages.ui.plain import plain


@dataclass(frozen=True)
class Bench:
    """One drawing of the page; `corpus` is None before the collection is indexed."""

    collection: Collection
    documents: DocumentsOfVersion
    corpus: Corpus | None
    search: SearchSettings
    index: IndexSettings
    store: JudgementStore
    judgements: Judgements
    fingerprint: str

    @property
    def queries(self) -> tuple[GoldenQuery, ...]:
        return self.judgements.queries

    @property
    def answerable(self) -> int:
        return sum(query.answerable for query in self.queries)

    @property
    def settings(self) -> Settings:
        return Settings(self.corpus.settings if self.corpus else self.index, self.search)

    @property
    def stamp(self) -> str:
        """Another one as soon as documents, index, settings or judgements change."""
        corpus = self.corpus.fingerprint if self.corpus else ""
        return f"{corpus} {self.search.fingerprint()} {self.fingerprint}"


def bench_of(collection: Collection, corpus: Corpus | None) -> Bench:
    """Raises CollectionError where documents or judgements cannot be read."""
    with st.spinner("Looking up the judged spans …"):
        judged = judgements_of(collection)
    return Bench(
        collection, documents_of(collection), corpus, state.search_settings(), state.index_settings(),
        open_judgements(collection), *judged,
    )  # fmt: skip


def query_link(query: GoldenQuery, label: str = "") -> None:
    """A link that asks the query on the Search page, with its golden evidence marked."""
    links.link(
        links.SEARCH, label or plain(query.text), ":material/search:", q=query.text, golden=query.id
    )

"""What contexts do to a query's ranks: the index with them against the same chunks without any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from html import escape

import streamlit as st

from core.collection import Collection
from core.corpus import Corpus, build_corpus, is_built
from core.errors import RankscopeError
from core.explanation import stage_title
from core.pipeline import search
from core.report.tables import chunk_hue, chunk_label
from core.settings import ContextSettings, IndexSettings, SearchSettings
from core.trace import CorpusView, Trace
from pages.ui import draw, links, state
from pages.ui.context_marks import move
from pages.ui.meter import Meter
from pages.ui.plain import counted

Working = Callable[[], None]
Ranks = dict[str, tuple[int | None, int | None]]
"""Index or "fused" → the rank without contexts, and with them; None where it is not ranked."""

_LISTED = 10


@dataclass(frozen=True)
class Comparison:
    """One query in both indexes; `names` are the indexes that answered, then "fused"."""

    plain: Trace
    contextual: Trace
    names: tuple[str, ...]
    places: Mapping[str, tuple[Mapping[int, int], Mapping[int, int]]]

    def of(self, chunk_id: str) -> Ranks | None:
        """A chunk's ranks; None where the index does not hold it."""
        try:
            after = self.contextual.corpus.position_of(chunk_id)  # type: ignore[attr-defined]
        except KeyError:
            return None
        try:
            before = self.plain.corpus.position_of(chunk_id)  # type: ignore[attr-defined]
        except KeyError:
            before = -1
        return {
            name: (self.places[name][0].get(before), self.places[name][1].get(after))
            for name in self.names
        }


def ranks_panel(
    collection: Collection, corpus: Corpus | None, draft: IndexSettings
) -> tuple[Comparison | None, Working | None]:
    """The query's ranks in both indexes, and the work that was asked for (an index without contexts)."""
    st.subheader("What contexts do to a query", anchor=False)
    _query_box()
    query = state.query().strip()
    if corpus is None or not _holds(corpus, draft):
        st.caption("Needs an index with these contexts: index with them first.")
        return None, None
    if not query:
        st.caption("Ask something to see which chunks its context moves up or down.")
        return None, None
    bare = corpus.settings.replace(context=ContextSettings())
    if not is_built(collection, bare):
        with st.container(horizontal=True, vertical_alignment="center", key="context_bare"):
            draw.text(
                "To compare, the same chunks are needed without contexts: an index beside the one in use, "
                "which it leaves as it is.",
                "rs-quiet",
            )
            pressed = st.button("Build it", key="context_build_bare", icon=":material/compare_arrows:")
        return None, (partial(_build, collection, bare, st.empty()) if pressed else None)
    plain = _bare_corpus(
        str(collection.folder), collection.version, bare.fingerprint(), collection, bare
    )
    settings = state.search_settings().replace(rerank="none")
    with st.spinner("Searching both indexes …", show_time=True):
        found = _compared(
            plain.fingerprint, corpus.fingerprint, query, settings.to_link(), plain, corpus
        )
    _table(found)
    return found, None


def _holds(corpus: Corpus, draft: IndexSettings) -> bool:
    """Whether the index has the contexts of this draft's writer, and chunks cut as in it."""
    have = corpus.settings
    return (have.context.writer_key, have.chunking) == (draft.context.writer_key, draft.chunking)


def _query_box() -> None:
    """The Search page's query box: one question for all pages."""
    state.fill_query_box()
    with (
        st.container(key="query_row"),
        st.form("context_query_form", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        st.text_input(
            "Query",
            key=state.QUERY_BOX,
            placeholder="Ask the documents something",
            label_visibility="collapsed",
            width="stretch",
        )
        st.form_submit_button(
            "Compare", key="context_query", icon=":material/compare_arrows:", on_click=state.submit_query,
            help="Searches both indexes with the settings of the Search page, without reranking",
        )  # fmt: skip


def _build(
    collection: Collection, bare: IndexSettings, place: st.delta_generator.DeltaGenerator
) -> None:
    with place.container():
        meter = Meter("Building the index without contexts", "documents cut", "texts embedded")
    try:
        build_corpus(collection, bare, meter)
    except RankscopeError as error:
        draw.notice(f"It could not be built: {error}", "error")
        return
    st.rerun()


@st.cache_resource(show_spinner=False, max_entries=2)
def _bare_corpus(
    folder: str, version: int, fingerprint: str, _collection: Collection, _bare: IndexSettings
) -> Corpus:
    return build_corpus(_collection, _bare)


@st.cache_resource(show_spinner=False, max_entries=8)
def _compared(
    plain: str, contextual: str, query: str, link: str, _plain: Corpus, _contextual: Corpus
) -> Comparison:
    settings = SearchSettings.from_link(link)
    before, after = search(_plain, query, settings), search(_contextual, query, settings)
    known = {stage.name for stage in before.stages if stage.on}
    names = [
        stage.name
        for stage in after.stages
        if stage.on and stage.kind == "search" and stage.name in known
    ]
    names.append("fused")
    places = {name: (_places(before, name), _places(after, name)) for name in names}
    return Comparison(before, after, tuple(names), places)


def _places(trace: Trace, name: str) -> dict[int, int]:
    ranking = trace.stage(name).ranking
    return {position: rank for rank, position in enumerate(ranking.positions.tolist(), 1)}


def _table(found: Comparison) -> None:
    """The best chunks with contexts, and those of the best without that fell back."""
    corpus = found.contextual.corpus
    best = found.contextual.stage("fused").ranking.positions[:_LISTED].tolist()
    before = found.plain.stage("fused").ranking.positions[:_LISTED].tolist()
    fallen = []
    for position in before:
        try:
            now = corpus.position_of(found.plain.corpus.chunk_id(position))  # type: ignore[attr-defined]
        except KeyError:
            continue
        if now not in best:
            fallen.append(now)
    if not best and not fallen:
        st.caption("Neither index finds anything for this query.")
        return
    heads = "".join(f'<th class="rs-num">{escape(stage_title(name))}</th>' for name in found.names)
    rows = "".join(_row(found, position) for position in best + fallen)
    st.html(
        '<div class="rs-scroll"><table class="rs-table rs-moves" data-testid="context-ranks"><thead><tr><th>Chunk</th>'
        f"<th>Document</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
    line = f"The best {len(best):,} with contexts"
    if fallen:
        line += f", then {counted(len(fallen), 'chunk')} that left the best {_LISTED}"
    st.caption(
        f"{line}. Each rank is without → with contexts; — is beyond the depth that is searched. "
        "A gained rank is only a gain where the chunk answers the query: open it and see."
    )
    _jumps(corpus, best + fallen)
    links.link(links.SEARCH, "Open this query on the Search page", ":material/search:", q=state.query())


def _jumps(corpus: CorpusView, positions: list[int]) -> None:
    chosen = {chunk_label(corpus, position): position for position in positions}

    def jump() -> None:
        label = st.session_state["context_jump"]
        if label in chosen:
            at = chosen[label]
            span = (int(corpus.starts[at]), int(corpus.ends[at]))
            st.session_state["context_only"] = (corpus.item_ids[corpus.item_of[at]], span)
        st.session_state["context_jump"] = None

    st.pills("Read one of them below", list(chosen), key="context_jump", on_change=jump)


def _row(found: Comparison, position: int) -> str:
    corpus = found.contextual.corpus
    item = int(corpus.item_of[position])
    ranks = found.of(corpus.chunk_id(position)) or {}
    cells = "".join(f'<td class="rs-num">{move(*ranks[name])}</td>' for name in found.names)
    chip = draw.chip(chunk_label(corpus, position), chunk_hue(position))
    name = corpus.item_titles[item] or corpus.item_names[item]
    return f"<tr><td>{chip}</td><td>{escape(name)}</td>{cells}</tr>"

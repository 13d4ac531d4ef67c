"""Golden queries drafted by Claude: the cost before, progress, and each draft reviewed by a person."""

from __future__ import annotations

import threading
from functools import partial
from html import escape

import streamlit as st

from core.collection import Collection
from core.corpus import Corpus
from core.errors import RankscopeError
from core.evaluation import Draft, locate
from core.evaluation.generate import DEFAULT_MODEL, DraftingProgress, GenerateJob, estimate, sample
from core.llm import Claude, missing_key
from core.types import Document
from pages.ui import draw, state
from pages.ui.evaluate_bench import Bench
from pages.ui.plain import counted, sentence
from pages.ui.prices import dollars, priced_models, prices

_LOOK = 1.0  # seconds between two looks at a job
_AROUND = 280  # characters shown before and after a quote
_BEGINNING = threading.Lock()


@st.cache_resource(show_spinner=False)
def _jobs() -> dict[str, GenerateJob]:
    """By collection, the latest job: it goes on when its window is closed."""
    return {}


def job_of(collection: Collection) -> GenerateJob | None:
    return _jobs().get(str(collection.folder))


def _put_away(collection: Collection) -> None:
    _jobs().pop(str(collection.folder), None)


def generate(bench: Bench) -> None:
    """How many, by which model, at what cost at most; then ask."""
    popover = st.popover(
        "Draft with Claude", icon=":material/auto_awesome:", key="generate_open", on_change="rerun"
    )
    if not popover.open:  # sampling looks at all chunks
        return
    with popover:
        if bench.corpus is None:
            draw.text("Index the collection first: questions are drafted from its chunks.", "rs-quiet")
            return
        draw.text(
            "Claude writes one question for each of some sampled chunks, with the words that answer it. "
            "None counts before you accept it. Such questions share words with their chunks more than "
            "people's do: they flatter whatever finds words.",
            "rs-quiet",
        )
        count = st.number_input("Questions", 1, 200, 20, key="generate_count")
        offered = list(dict.fromkeys([DEFAULT_MODEL, *priced_models()]))
        model = st.selectbox("Model", offered, key="generate_model", accept_new_options=True)
        drafts = bench.store.drafts()
        chunks = sample(bench.corpus, int(count), len(drafts), _asked(bench.corpus, drafts))
        if not chunks:
            draw.text("No chunk is left that was not asked about and is long enough.", "rs-quiet")
            return
        model = (model or "").strip() or DEFAULT_MODEL
        cost = estimate(chunks, model, prices())
        priced = cost.dollars is not None and cost.most is not None
        rows = [
            ("Calls", f"{cost.calls:,}", "one for each chunk, each of another document where there are enough"),
            ("Expected cost", dollars(cost.dollars), f"{cost.input:,} tokens in, {cost.output:,} out, roughly"),
            ("At most", dollars(cost.most), "with answers of full length"),
        ]  # fmt: skip
        draw.table(("", "", ""), rows, numeric=(1,))
        cap = st.number_input(
            "Stop before it costs more than, US dollars", 0.0, 1_000.0, max(0.01, round(cost.most or 1.0, 2)),
            step=0.1, key=f"generate_cap_{count}_{model}", disabled=not priced,
        )  # fmt: skip
        needed = missing_key()
        if needed:
            draw.notice(needed, "warning")
        job = job_of(bench.collection)
        st.button(
            f"Draft {counted(len(chunks), 'question')}", key="generate_do", type="primary",
            disabled=bool(needed) or (job is not None and job.running),
            on_click=_begin, args=(bench, chunks, model, cap if priced else None),
            help="Sends these chunks to the model",
        )  # fmt: skip


def _asked(corpus: Corpus, drafts: list[Draft]) -> set[str]:
    """Ids of the chunks that drafts were made from."""
    found = set()
    for draft in drafts:
        try:
            item = corpus.item_position(draft.document_id)
        except KeyError:
            continue
        first, last = corpus.first_chunk[item : item + 2].tolist()
        for at in range(first, last):
            if corpus.starts[at] <= draft.start and draft.end <= corpus.ends[at]:
                found.add(corpus.chunk(at).id)
    return found


def _begin(bench: Bench, chunks: list, model: str, cap: float | None) -> None:
    try:
        with _BEGINNING:
            job = job_of(bench.collection)
            if job is None or not job.running:
                _jobs()[str(bench.collection.folder)] = GenerateJob(
                    bench.store, bench.documents, chunks, Claude(retries=1), prices(), model, cap
                )
    except RankscopeError as error:
        state.notify(str(error))


def review(bench: Bench) -> None:
    """The drafting under way, and the drafts that wait for a person, one at a time."""
    job = job_of(bench.collection)
    if job is not None and job.running:
        st.fragment(partial(_running, job), run_every=_LOOK)()
    elif job is not None:
        _ended(bench.collection, job.progress())
    waiting = bench.store.drafts("waiting")
    if waiting:
        _one(bench, waiting)


def _running(job: GenerateJob) -> None:
    if not job.running:
        st.rerun()
    now = job.progress()
    with st.container(key="generate_running"):
        st.progress(now.done / now.total if now.total else 1.0)
        with st.container(horizontal=True, vertical_alignment="center"):
            draw.text(f"Drafting · {_told(now)}", "rs-text")
            st.button(
                "Stop", key="generate_stop", on_click=job.stop,
                help="Calls under way still end; their drafts are kept",
            )  # fmt: skip


def _told(now: DraftingProgress) -> str:
    parts = [f"{now.done:,} of {counted(now.total, 'call')}", counted(now.waiting, "draft")]
    if now.dropped:
        parts.append(f"{now.dropped:,} of no use")
    if now.failed:
        parts.append(f"{len(now.failed):,} failed")
    parts.append(dollars(now.dollars))
    if now.unsure:
        parts.append(f"at most {dollars(now.unsure)} for answers that were lost")
    return " · ".join(parts)


def _ended(collection: Collection, now: DraftingProgress) -> None:
    kind = {"done": "info", "stopped": "info", "capped": "warning"}.get(now.state, "error")
    told = {"done": "Drafted", "stopped": "Stopped", "capped": "Stopped at the limit"}.get(
        now.state, "Could not go on"
    )
    reason = f" {sentence(now.reason)}" if now.reason and now.state not in ("done", "stopped") else ""
    with st.container(horizontal=True, vertical_alignment="center", key="generate_ended"):
        draw.notice(f"{told}: {_told(now)}.{reason}", kind)  # type: ignore[arg-type]
        st.button(
            "Close", key="generate_close", type="tertiary",
            on_click=_put_away,
            args=(collection,),
        )  # fmt: skip
    if now.failed:
        with st.expander("Which failed, and why", key="generate_failed"):
            for one in now.failed[:20]:
                draw.text(one, "rs-quiet")


def _one(bench: Bench, waiting: list[Draft]) -> None:
    draft = waiting[0]
    with st.container(border=True, key="review"):
        draw.text(f"{counted(len(waiting), 'draft')} to review", "rs-subhead")
        document = _document(bench, draft)
        st.text_area(
            "Question", draft.question, key=f"review_question_{draft.id}", height=68,
            help="Put it in the words a person would use who has not read the document",
        )  # fmt: skip
        if document is None:
            draw.notice(
                f"{draft.document} is no longer in the collection as it was; drop this draft.", "warning"
            )
        else:
            _surroundings(document, draft)
            with st.popover(
                "Other words answer it", icon=":material/format_quote:", key="review_quote_open"
            ):
                st.text_area(
                    "Quote, word for word", draft.quote, key=f"review_quote_{draft.id}", height=120,
                    help="From one stretch of the document; looked up when you accept",
                )  # fmt: skip
        with st.container(horizontal=True, vertical_alignment="center", key="review_do"):
            st.button(
                "Accept", key=f"review_accept_{draft.id}", type="primary", icon=":material/check:",
                disabled=document is None, on_click=_accept, args=(bench, draft, document),
            )  # fmt: skip
            st.button(
                "Drop", key=f"review_drop_{draft.id}", icon=":material/close:", on_click=_drop,
                args=(bench, draft), help="It counts for nothing",
            )  # fmt: skip
            draw.text(f"by {draft.model}, {dollars(draft.dollars)}", "rs-quiet")


def _document(bench: Bench, draft: Draft) -> Document | None:
    if draft.document_id not in bench.documents.ids:
        return None
    return bench.documents[bench.documents.ids.index(draft.document_id)]


def _surroundings(document: Document, draft: Draft) -> None:
    first, last = max(0, draft.start - _AROUND), draft.end + _AROUND
    before, quote = document.text[first : draft.start], document.text[draft.start : draft.end]
    after = document.text[draft.end : last]
    st.html(
        f'<div class="rs-eval-span"><p class="rs-card-part">{escape(document.name)} · '
        f"{draft.start:,}–{draft.end:,}</p>"
        f'<p class="rs-source">{"…" * (first > 0)}{escape(before)}<mark>{escape(quote)}</mark>{escape(after)}'
        f"{'…' * (last < len(document.text))}</p></div>"
    )


def _accept(bench: Bench, draft: Draft, document: Document) -> None:
    question = st.session_state[f"review_question_{draft.id}"]
    quote = st.session_state.get(f"review_quote_{draft.id}", draft.quote)
    try:
        span = locate(quote, document) if quote.strip() != draft.quote.strip() else None
        if span or question.strip() != draft.question:
            bench.store.edit(draft.id, bench.documents, question, span)
        bench.store.accept(draft.id, bench.documents)
    except RankscopeError as error:
        state.notify(sentence(str(error)))


def _drop(bench: Bench, draft: Draft) -> None:
    try:
        bench.store.drop(draft.id)
    except RankscopeError as error:
        state.notify(str(error))

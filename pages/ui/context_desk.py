"""What is being written: one job for each collection in this process, whichever window began it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import streamlit as st

from core.collection import Collection, remember, remembered
from core.contextualizing import batch
from core.contextualizing.job import ContextJob, writer_client
from core.contextualizing.plan import make_plan
from core.contextualizing.work import Work, count_documents, survey
from core.protocols import Progress
from core.settings import IndexSettings
from pages.ui.context_work import Bench
from pages.ui.prices import prices


@dataclass(frozen=True)
class Run:
    """A job and the settings that it writes for."""

    job: ContextJob
    draft: IndexSettings


@dataclass(frozen=True)
class Forecast:
    """What the latest writing with one writer was expected to cost, and what had been paid before it."""

    chunks: int
    expected: float | None
    paid_before: float
    how: str


@st.cache_resource(show_spinner=False)
def _runs() -> dict[str, Run]:
    return {}


def run_of(collection: Collection) -> Run | None:
    """The job begun last for the collection, running or ended; None after a restart or when put away."""
    return _runs().get(str(collection.folder))


def put_away(collection: Collection) -> None:
    """Forget a job that has ended; what it wrote is kept."""
    run = run_of(collection)
    if run and not run.job.running:
        _runs().pop(str(collection.folder), None)


def begin(bench: Bench, cap: float | None) -> None:
    """Write what is left, live. Raises LlmError and ContextError where that cannot begin."""
    client = writer_client(bench.settings)
    facts = client.facts(bench.settings.model)
    work = _fresh(bench, facts.max_input_tokens)
    job = ContextJob(bench.store, bench.documents, work, bench.settings, client, prices(), cap)
    plan = make_plan(work, bench.settings, prices(), bench.store.seen(bench.settings.model))
    job.start()
    _foresee(bench, work, plan.live.expected if plan.live else None, "live")
    _runs()[str(bench.collection.folder)] = Run(job, bench.draft)


def hand_over(bench: Bench, cap: float | None) -> int:
    """Hand what is left over as batches; how many. Raises LlmError and ContextError, also above the cap."""
    client = writer_client(bench.settings)
    work = _fresh(bench, client.facts(bench.settings.model).max_input_tokens)
    plan = make_plan(work, bench.settings, prices(), bench.store.seen(bench.settings.model))
    _foresee(bench, work, plan.batch.expected if plan.batch else None, "batch")
    return len(batch.submit(bench.store, bench.documents, work, bench.settings, client, prices(), cap))


def count(bench: Bench, progress: Progress) -> None:
    """Have the server count the documents, free of charge. Raises LlmError."""
    client = writer_client(bench.settings)
    quiet = client.facts(bench.settings.model).quiet
    count_documents(
        bench.store,
        bench.documents,
        _fresh(bench, None),
        bench.settings,
        client,
        quiet,
        progress=progress,
    )


def _fresh(bench: Bench, max_input_tokens: int | None) -> Work:
    return survey(bench.store, bench.documents, bench.spans, bench.settings, max_input_tokens)


def forecast(collection: Collection, writer_key: str) -> Forecast | None:
    """That of the latest writing with this writer."""
    kept = remembered(_name(collection, writer_key))
    return Forecast(**json.loads(kept)) if kept else None


def _foresee(bench: Bench, work: Work, expected: float | None, how: str) -> None:
    paid = bench.store.totals(bench.settings.writer_key).dollars
    made = Forecast(work.chunks, expected, paid, how)
    remember(_name(bench.collection, bench.settings.writer_key), json.dumps(asdict(made)))


def _name(collection: Collection, writer_key: str) -> str:
    return f"context_forecast/{collection.id}/{writer_key}"

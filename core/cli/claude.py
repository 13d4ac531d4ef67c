"""The commands that decide what is indexed with the chunks, and that ask Claude: paid ones say so first."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from core.cli.base import (
    CollectionOption,
    JsonOption,
    SetOption,
    SettingsOption,
    app,
    errors,
    index_settings,
    opened,
    progress,
    show,
    trace_of,
)
from core.errors import ContextError, LlmError
from core.sample import SAMPLE
from core.settings import PAID_WRITERS

IndexSetOption = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="A setting of the index, such as context.writer=headings."),
]


@app.command()
def index(
    collection: CollectionOption = SAMPLE,
    changes: IndexSetOption = None,
    settings: SettingsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cut, embed and index a collection; with --set or --settings in another way, which is then kept."""
    from core.corpus import build_corpus

    with errors():
        store = opened(collection)
        chosen = index_settings(store, changes, settings)
        _say_price(store, chosen.model)
        made = build_corpus(store, chosen, progress)
        if chosen != store.settings().index:  # only now: a model that fails must not stay chosen
            store.save_settings(store.settings().replace(index=chosen))
    facts = {"documents": len(made.item_ids), "chunks": len(made), "notes": list(made.notes)}
    lines = [f"{facts['chunks']:,} chunks of {facts['documents']:,} documents", *made.notes]
    show(facts, as_json, "\n".join(lines))


@app.command()
def contexts(
    collection: CollectionOption = SAMPLE,
    changes: IndexSetOption = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write them; without it nothing is paid.")
    ] = False,
    cap: Annotated[
        float | None, typer.Option(min=0.0, help="US dollars at which writing stops; needed to write.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """What contexts by a model would cost; with --write they are written, and kept as they come.

    Stop with Ctrl-C: what is written stays, and the next run goes on from there. `index` makes them count.
    """
    from core.contextualizing.job import ContextJob, writer_client
    from core.contextualizing.plan import make_plan
    from core.contextualizing.store import open_store
    from core.contextualizing.work import survey
    from core.prices import load_prices

    with errors():
        store = opened(collection)
        chosen = index_settings(store, changes, None)
        if chosen.context.writer not in PAID_WRITERS:
            raise ContextError(
                f"the writer is {chosen.context.writer}: nothing to pay; --set context.writer=claude plans that"
            )
        kept, prices = open_store(store), load_prices()
        documents = store.documents()
        spans = _spans(documents, chosen)
        work = survey(kept, documents, spans, chosen.context)
        plan = make_plan(work, chosen.context, prices, kept.seen(chosen.context.model))
        found: dict[str, Any] = {"plan": asdict(plan)}
        lines = [
            f"{plan.chunks:,} chunks of {plan.documents:,} documents to write, {plan.done:,} written already, "
            f"{plan.whole:,} need none (they are their whole document)",
            _priced("now", plan.live),
            _priced("as a batch", plan.batch),
        ]
        failed = False
        if write:
            if cap is None:
                raise typer.BadParameter("--write needs --cap, the US dollars at which to stop")
            client = writer_client(chosen.context)
            job = ContextJob(kept, documents, work, chosen.context, client, prices, cap)
            end = _run(job)
            failed = end.state != "done" or bool(end.failed)
            found["job"] = asdict(end)
            lines += [
                f"{end.done:,} of {end.total:,} written: {end.state} {end.reason}".rstrip(),
                *(f"{one.name} {one.start}–{one.end}: {one.reason}" for one in end.failed),
                _spent(end.dollars),
                *end.notes,
            ]
            if chosen != store.settings().index:
                store.save_settings(store.settings().replace(index=chosen))
    show(found, as_json, "\n".join(lines))
    if failed:
        raise typer.Exit(1)


@app.command()
def answer(
    question: Annotated[str, typer.Argument(help="What to answer from the documents.")],
    collection: CollectionOption = SAMPLE,
    model: Annotated[str, typer.Option(help="The model that answers.")] = "claude-sonnet-5-5",
    passages: Annotated[int, typer.Option(min=1, help="How many passages it gets.")] = 20,
    changes: SetOption = None,
    settings: SettingsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let Claude answer from the best passages, with citations. Paid: the cost is said before and after."""
    from core.answering import AnswerStore, as_text, ask, estimate, from_trace, rough_prompt
    from core.llm import Claude, missing_key
    from core.prices import load_prices

    with errors():
        store = opened(collection)
        inquiry = from_trace(trace_of(question, collection, changes, settings), model, passages)
        kept, prices = AnswerStore(store.folder), load_prices()
        given = kept.find(inquiry.key)
        if given is None:
            if missing := missing_key():
                raise LlmError(missing, "key")
            expected = estimate(inquiry, prices, rough_prompt(inquiry)).dollars
            cost = "an unknown price" if expected is None else f"about ${expected:.4f}"
            typer.echo(f"{len(inquiry.sources)} passages go to {model}, for {cost}", err=True)
            *_, given = ask(inquiry, kept, Claude(retries=1), prices, expected)
        else:
            typer.echo("this answer was paid for before", err=True)
    lines = [as_text(given), "", f"{given.state} {given.note}".strip() + f", {_spent(given.dollars)}"]
    show(asdict(given), as_json, "\n".join(lines))


def _say_price(store: Any, model: str) -> None:
    """What embedding costs at most, where a service does it."""
    from core.embedding import load_embedder

    embedder = load_embedder(model)
    if estimate := getattr(embedder, "estimate_dollars", None):
        dollars = estimate(sum(embedder.count_tokens([one.text for one in store.documents()])))
        about = "a price that is not known" if dollars is None else f"${dollars:.4f}"
        typer.echo(f"texts that have no vector yet go to {model}, for {about} at most", err=True)


def _spans(documents: Any, chosen: Any) -> list[list[tuple[int, int]]]:
    from core.chunking import split
    from core.embedding import load_embedder
    from core.vectors_cache import embed_all, shared_cache

    embedder, cache = load_embedder(chosen.model), shared_cache()

    def embed(texts: Any) -> Any:
        return embed_all(texts, embedder, cache)

    return [split(one, chosen.chunking, embedder.count_tokens, embed) for one in documents]


def _spent(dollars: float | None) -> str:
    return "cost: not known" if dollars is None else f"cost: ${dollars:.4f}"


def _priced(how: str, dollars: Any) -> str:
    if dollars is None:
        return f"{how}: no price is known"
    return f"{how}: about ${dollars.expected:.4f} (${dollars.low:.4f} to ${dollars.high:.4f})"


def _run(job: Any) -> Any:
    job.start()
    try:
        while (now := job.snapshot()).state in ("running", "paused"):
            if now.state == "paused":
                typer.echo(f"paused: {now.reason}", err=True)
                job.stop()
            if sys.stderr.isatty():
                typer.echo(
                    f"\r{now.done:,} of {now.total:,}, ${now.dollars or 0:.4f}", err=True, nl=False
                )
            time.sleep(0.2)
    except KeyboardInterrupt:
        job.stop()
    job.join()
    return job.snapshot()

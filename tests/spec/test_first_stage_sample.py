"""The README's worked example: rules, a click log and permissions on the sample collection, loaded by the
commands that it shows; each claim in the trace, in the columns, in the picture and in the export."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.access import parse_viewer
from core.cli import app
from core.collection import open_collection
from core.corpus import Corpus, build_corpus
from core.documents import ListedDocuments
from core.evaluation import read_judgements
from core.evaluation.permissions import recall_by_viewer
from core.explanation import explain
from core.pipeline import replay, search
from core.report.export import trace_to_dict
from core.report.figures import item_flow
from core.report.tables import Reader, columns, item_label, item_signals
from core.sample import SAMPLE, sample_queries
from core.trace import Trace
from core.vectors_cache import shared_cache

pytestmark = pytest.mark.model

ROOT = Path(__file__).parents[2]
SECTION = "## First stage: rules, behaviour, permissions"
PRICES, NEWS = "parts-and-prices-2024.xlsx", "newsletter-2023-12.txt"
CONTRACTS = ("contract-hellebore.txt", "contract-skjerholm.txt")
LEGAL, BO = parse_viewer("anna@tarnfell.example, group:legal"), parse_viewer("bo@tarnfell.example")
BREACH = "How quickly must Tarnfell tell Skjerholm Seafoods about a data breach?"
TOKEN, PARAPHRASE = "how long is a token valid", "how long do tokens stay valid"


def commands() -> list[list[str]]:
    """Those of the section that change the sample."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").split(SECTION)[1].split("\n## ")[0]
    block = re.findall(r"```\n(.*?)```", text, re.DOTALL)[0]
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    return [words[1:] for words in lines if {"--set", "--import"} & set(words)]


def run(words: list[str]) -> str:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (words, result.output)
    return result.output


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(tmp_path_factory.mktemp("home")))
        patch.chdir(ROOT)
        loaded = commands()
        assert {words[0] for words in loaded} == {"rules", "behaviour", "access"}
        for words in loaded:
            run(words)
        collection = open_collection(SAMPLE)
        yield build_corpus(collection, collection.settings().index)


def item(corpus: Corpus, name: str) -> int:
    """By file name, or a ticket by its number."""
    titles = [title.split(" ")[0] for title in corpus.item_titles]
    return corpus.item_names.index(name) if name in corpus.item_names else titles.index(name)


def rank(trace: Trace, position: int) -> int | None:
    return trace.stage("items").ranking.rank_of(position)


def without(trace: Trace, signal: str) -> Trace:
    return replay(trace, trace.settings.with_signal(signal, on=False))


def line_of(trace: Trace, corpus: Corpus, position: int) -> dict[str, Any]:
    """The item's line in the column of the item stage."""
    column = columns(trace, Reader(corpus, trace.query, corpus.settings.analyzer))[0]
    assert column["name"] == "items"
    return next(line for line in column["lines"] if line["id"] == corpus.item_ids[position])


def drawn(trace: Trace, position: int) -> tuple[str, list[int], str]:
    """The item's line in the picture: the signs behind its label, its ranks, and how it ends."""
    label = item_label(position)
    (line,) = [one for one in item_flow(trace).data if one.name.split(" ")[0] == label]
    return line.name.removeprefix(label).strip(), list(line.y), line.marker.symbol[-1]


def exported(trace: Trace, position: int) -> dict[str, Any]:
    """What the rules did with the item, in the export."""
    id = trace.corpus.item_ids[position]
    return next(one for one in trace_to_dict(trace)["rules"]["items"] if one["id"] == id)


def test_a_boost_moves_the_price_list_from_4_to_1_and_the_trace_names_the_rule(corpus: Corpus) -> None:
    trace = search(corpus, "price of probe cable")
    trace.check()
    prices = item(corpus, PRICES)
    assert (rank(without(trace, "rules"), prices), rank(trace, prices)) == (4, 1)
    said = ["rule prices from the price list: boost 1"]
    line = line_of(trace, corpus, prices)
    assert line["said"] == said
    part = next(one for one in line["parts"] if one["name"] == "items.rules")
    assert part["term"] == pytest.approx(1 / 11)
    signs, ranks, end = drawn(trace, prices)
    assert (signs, ranks[-1], end) == ("▲", 1, "circle")
    assert (exported(trace, prices)["boost"], exported(trace, prices)["said"]) == (1, said)
    step = explain(trace, int(corpus.first_chunk[prices])).step("items.rules")
    assert step.rank == 1


def test_a_pin_puts_the_ticket_at_1(corpus: Corpus) -> None:
    trace = search(corpus, "which cable fits the logger probe")
    trace.check()
    ticket = item(corpus, "SUP-47850")
    assert (rank(without(trace, "rules"), ticket), rank(trace, ticket)) == (3, 1)
    line = line_of(trace, corpus, ticket)
    assert (line["said"], line["move"]) == (["rule which cable: pin at 1"], 2)
    assert drawn(trace, ticket)[0] == "→1"
    assert drawn(trace, ticket)[1][-2:] == [3, 1]
    assert exported(trace, ticket)["pin"] == 1


def test_what_a_rule_hides_is_nowhere_and_says_why(corpus: Corpus) -> None:
    trace = search(corpus, "what is in the newsletter for Christmas")
    trace.check()
    news, reason = item(corpus, NEWS), "rule no staff news hides it"
    assert (rank(without(trace, "rules"), news), rank(trace, news)) == (1, None)
    assert news not in {passage.item for passage in trace.passages}
    assert trace.stage("items").removed == {news: reason}
    told = explain(trace, int(corpus.first_chunk[news]))
    assert told.lost_at == "items"
    assert reason in told.sentence
    assert [row["hidden"] for row in item_signals(trace) if row["item"] == news] == [reason]
    signs, _, end = drawn(trace, news)
    assert (signs, end) == ("✕", "x")
    assert exported(trace, news)["hidden"] == reason


def test_what_people_opened_rises_for_the_query_and_for_one_that_nobody_asked(corpus: Corpus) -> None:
    ticket = item(corpus, "SUP-48533")
    asked = {event.query for event in corpus.first_stage.events}
    assert TOKEN in asked
    assert PARAPHRASE not in asked
    for query, before in ((TOKEN, 4), (PARAPHRASE, 5)):
        trace = search(corpus, query)
        trace.check()
        assert trace.stage("items.clicks").ranking.positions[0] == ticket
        assert (rank(without(trace, "clicks"), ticket), rank(trace, ticket)) == (before, 1)
        clicks = item_signals(trace)[0]["signals"]["clicks"]
        assert clicks["rank"] == 1
        assert clicks["why"].startswith("10 of 14 people who were shown it")
        parts = {one["name"]: one["rank"] for one in line_of(trace, corpus, ticket)["parts"]}
        assert parts["items.clicks"] == 1
        assert drawn(trace, ticket)[1][-1] == 1
        stages = {one["name"]: one for one in trace_to_dict(trace)["stages"]}
        assert stages["items.clicks"]["ranking"][0]["id"] == corpus.item_ids[ticket]
    for query in ("token lifetime", "which cable fits the logger probe"):  # unlike all that was asked
        assert len(search(corpus, query).stage("items.clicks").ranking) == 0


def test_one_sees_the_contract_and_the_other_a_collection_without_it(corpus: Corpus) -> None:
    hers, his = corpus.for_viewer(LEGAL), corpus.for_viewer(BO)
    assert (len(hers.item_ids), len(his.item_ids)) == (77, 75)
    trace = search(hers, BREACH)
    contract = item(hers, CONTRACTS[1])
    assert contract in {passage.item for passage in trace.passages}
    assert line_of(trace, hers, contract)["said"] == ["rule legal reads contracts first: boost 2"]
    assert drawn(trace, contract)[0] == "▲"
    alone = _without_contracts(corpus)
    for query in (BREACH, TOKEN, "payment terms and service credits", "price of probe cable"):
        mine, theirs = search(his, query), search(alone, query)
        assert mine == theirs
        told, expected = trace_to_dict(mine), trace_to_dict(theirs)
        for times in (told, expected):
            times.pop("milliseconds", None)
        assert told == expected
        assert item_flow(mine).to_json() == item_flow(theirs).to_json()
        reader = Reader(his, query, his.settings.analyzer)
        other = Reader(alone, query, alone.settings.analyzer)
        assert columns(mine, reader) == columns(theirs, other)
        assert not set(CONTRACTS) & set(his.item_names)
        assert not any(name in json.dumps(told) for name in CONTRACTS)


def _without_contracts(corpus: Corpus) -> Corpus:
    """The corpus of a collection that never held them, as the same person sees it."""
    documents = [
        corpus.document(at) for at, name in enumerate(corpus.item_names) if name not in CONTRACTS
    ]
    listed, cache = (
        ListedDocuments(documents),
        shared_cache(),
    )  # the model's last digit varies with its batches
    made = Corpus.from_documents(listed, corpus.settings, corpus.embedder, cache)
    ids = set(made.item_ids)
    events = tuple(one for one in corpus.first_stage.events if one.document_id in ids)
    return made.with_first_stage(replace(corpus.first_stage, events=events)).for_viewer(BO)


def test_permissions_cost_each_viewer_what_is_withheld(corpus: Corpus) -> None:
    collection = open_collection(SAMPLE)
    contracts = {corpus.item_ids[item(corpus, name)] for name in CONTRACTS}
    every = read_judgements(sample_queries(), collection.documents()).queries
    asks = {query.id: any(one.document_id in contracts for one in query.evidence) for query in every}
    judged = [*(query for query in every if asks[query.id]), *every[:8]]
    everything, hers, his = recall_by_viewer(corpus, judged, viewers=[None, LEGAL, BO], stage="passages")
    assert everything.withheld == hers.withheld == 0
    assert (everything.items, hers.items, his.items) == (77, 77, 75)
    assert [bool(hidden) for hidden in his.hidden] == [asks[id] for id in his.queries]
    assert his.recall <= 1 - his.withheld < 1
    assert his.recall_of_seen is not None
    assert his.recall_of_seen > his.recall

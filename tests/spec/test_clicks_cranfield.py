"""What the click signal is worth to the item stage, told by simulated people (`tests.click_simulator`).

Half of the queries are asked, as they are or reworded; the others never are. Reported are paired differences of nDCG@10
of the items, with the signal less without: of the asked queries (`repeated`), of a wording of them that nobody used
(`reworded`), and of the queries that nobody asked (`new`). A query's value is its mean over the seeds in which it is
in the group; the 95 % interval is over queries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

from core.behaviour.events import Event
from core.corpus import Corpus
from core.corpus.first_stage import FirstStage
from core.embedding import load_embedder
from core.evaluation import read_set
from core.evaluation.statistics import Interval, interval
from core.pipeline import search
from core.pipeline.further import click_signal
from core.pipeline.items import rank_items
from core.settings import ChunkSettings, IndexSettings, SearchSettings
from core.trace import Ranking
from core.types import Document
from core.vectors_cache import VectorCache
from tests.click_simulator import (
    Person,
    anywhere,
    cascade,
    position_based,
    reworded,
    simulate,
    top_heavy,
)
from tests.fakes import HashEmbedder

SETTINGS = SearchSettings(items=20)
TODAY = date(2026, 6, 1)
CRANFIELD_SEEDS = 5
WORDINGS = 3  # of each query: two that people use, one that nobody does
PEOPLE: Mapping[str, Person] = {
    "position-based, η = 1": position_based(1.0),
    "position-based, η = 0.5": position_based(0.5),
    "cascade": cascade,
}
NOISE: Mapping[str, Person] = {"anywhere": anywhere, "at the top": top_heavy}

Gold = Mapping[str, Mapping[str, int]]
"""Query → item id → grade, from 1."""


def ndcg(ids: Sequence[str], grades: Mapping[str, int]) -> float:
    """nDCG@10, linear gain."""
    discount = 1 / np.log2(np.arange(2, 12))
    best = sorted(grades.values(), reverse=True)[:10]
    gained = sum(grades.get(one, 0) * by for one, by in zip(ids[:10], discount, strict=False))
    return float(gained / (best @ discount[: len(best)]))


class Simulation:
    """One corpus, its queries and their wordings; the items' signals are asked once for each wording."""

    def __init__(self, corpus: Corpus, gold: Gold) -> None:
        rng = np.random.default_rng(0)
        self.corpus, self.gold = corpus, gold
        self.wordings = {query: [reworded(query, rng) for _ in range(WORDINGS)] for query in gold}
        self.signals: dict[str, Mapping[str, Ranking]] = {
            words: search(corpus, words, SETTINGS).record.signals
            for query, others in self.wordings.items()
            for words in (query, *others)
        }
        self.plain = {words: self.items(words) for words in self.signals}

    def items(self, words: str, corpus: Corpus | None = None) -> list[str]:
        """The pipeline's item stage, with the clicks that a corpus has."""
        signals = dict(self.signals[words])
        if corpus:
            signals["clicks"] = click_signal(corpus).rank(words)
        ranked = rank_items(signals, SETTINGS).ranking.positions[:20]
        return [self.corpus.item_ids[position] for position in ranked.tolist()]

    def sessions(self, person: Person, seed: int, shown: bool = True) -> tuple[list[str], list[Event]]:
        """The queries that are asked, and the events."""
        rng = np.random.default_rng(1000 + seed)
        queries = list(self.gold)
        asked = [queries[at] for at in sorted(rng.permutation(len(queries))[: len(queries) // 2])]
        events = simulate(
            person,
            {query: self.wordings[query][:2] for query in asked},
            self.plain.__getitem__,
            lambda query, item: item in self.gold[query],
            seed=seed,
            end=datetime(2026, 6, 1, tzinfo=UTC),
        )
        return asked, [one for one in events if shown or one.kind != "shown"]

    def differences(self, person: Person, seeds: int, shown: bool = True) -> Differences:
        found: dict[str, dict[str, list[float]]] = {
            group: defaultdict(list) for group in ("repeated", "reworded", "new")
        }
        for seed in range(seeds):
            asked, events = self.sessions(person, seed, shown)
            corpus = self.corpus.with_first_stage(FirstStage(events=tuple(events), today=TODAY))
            for query, others in self.wordings.items():
                group = "repeated" if query in asked else "new"
                found[group][query].append(self._difference(query, query, corpus))
                if query in asked:
                    found["reworded"][query].append(self._difference(query, others[2], corpus))
        return Differences(
            **{
                group: interval([np.mean(one) for one in values.values()], bounds=(-1.0, 1.0))
                for group, values in found.items()
            }
        )

    def _difference(self, query: str, words: str, corpus: Corpus) -> float:
        grades = self.gold[query]
        return ndcg(self.items(words, corpus), grades) - ndcg(self.plain[words], grades)


@dataclass(frozen=True)
class Differences:
    repeated: Interval
    reworded: Interval
    new: Interval

    def __str__(self) -> str:
        return "; ".join(
            f"{name} {one.mean:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"
            for name, one in vars(self).items()
        )


# Data of our making: of four items that all hold the words of a query, one is meant, and no text tells which.

TOPICS = 30


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    rng = np.random.default_rng(5)
    documents, gold = [], {}
    for topic in range(TOPICS):
        words = ["".join(rng.choice(list("bdfklmnprst"), 8)) for _ in range(6)]
        for copy in range(4):
            text = " ".join([*words, *(f"filler{number}" for number in rng.integers(0, 300, 12))])
            documents.append(Document(f"t{topic}-{copy}", f"t{topic}-{copy}.txt", "", text))
        gold[" ".join(words)] = {f"t{topic}-{rng.integers(4)}": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(tmp_path_factory.mktemp("home")))
        yield Simulation(Corpus.from_documents(documents, IndexSettings(), HashEmbedder(256)), gold)


@pytest.mark.parametrize("name", PEOPLE)
def test_what_people_mean_comes_first_where_they_asked(ours: Simulation, name: str) -> None:
    found = ours.differences(PEOPLE[name], seeds=2)
    assert found.repeated.low > 0.1, found
    assert found.new.mean == 0, found


@pytest.mark.parametrize("name", NOISE)
def test_noise_moves_nothing(ours: Simulation, name: str) -> None:
    found = ours.differences(NOISE[name], seeds=2)
    assert [one.mean for one in vars(found).values()] == [0, 0, 0]


def test_a_log_without_what_was_shown_still_gains(ours: Simulation) -> None:
    found = ours.differences(position_based(1.0), seeds=2, shown=False)
    assert found.repeated.low > 0, found
    assert found.new.mean == 0, found


def test_the_item_stage_of_a_search_is_the_one_measured(ours: Simulation) -> None:
    asked, events = ours.sessions(position_based(1.0), seed=0)
    corpus = ours.corpus.with_first_stage(FirstStage(events=tuple(events), today=TODAY))
    moved = 0
    for query in asked[:8]:
        stage = search(corpus, query, SETTINGS).stage("items")
        found = [corpus.item_ids[position] for position in stage.ranking.positions.tolist()]
        assert found == ours.items(query, corpus)
        moved += found != ours.plain[query]
    assert moved


# Cranfield: 225 questions on 1,398 abstracts, five seeds, about 2,200 sessions each.


@pytest.fixture(scope="module")
def cranfield(eval_data: Path, pytestconfig: pytest.Config) -> Iterator[Simulation]:
    assert pytestconfig.cache
    folder = pytestconfig.cache.mkdir("figures")
    read = read_set(eval_data / "data" / "cranfield")
    index = IndexSettings(chunking=ChunkSettings(strategy="fixed", size=20_000))
    cache = VectorCache(folder / "vectors.db")
    gold = {
        one.text: {found.document_id: found.grade for found in one.evidence}
        for one in read.judgements.queries
        if one.evidence
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(folder))
        yield Simulation(
            Corpus.from_documents(read.documents, index, load_embedder(index.model), cache), gold
        )
    cache.close()


@pytest.mark.model
@pytest.mark.bench
@pytest.mark.figures
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("shown", [True, False], ids=["shown", "clicks alone"])
@pytest.mark.parametrize("name", PEOPLE)
def test_repeated_queries_gain_and_new_ones_lose_nothing(
    cranfield: Simulation, name: str, shown: bool
) -> None:
    found = cranfield.differences(PEOPLE[name], CRANFIELD_SEEDS, shown)
    print(f"\n{name}{'' if shown else ', clicks alone'}: {found}")
    assert found.repeated.low > (0.05 if shown else 0.01), found
    assert found.reworded.low > (0.05 if shown else 0.01), found
    assert found.new.low > -0.002, found


@pytest.mark.model
@pytest.mark.bench
@pytest.mark.figures
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("shown", [True, False], ids=["shown", "clicks alone"])
@pytest.mark.parametrize("name", NOISE)
def test_random_clicks_cost_nothing(cranfield: Simulation, name: str, shown: bool) -> None:
    found = cranfield.differences(NOISE[name], CRANFIELD_SEEDS, shown)
    print(f"\n{name}{'' if shown else ', clicks alone'}: {found}")
    for one in (found.repeated, found.reworded, found.new):
        assert abs(one.mean) < 0.001, found

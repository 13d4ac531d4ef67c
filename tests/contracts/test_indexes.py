"""One contract, run over every index: what the retriever and the pages rely on."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from core.indexes import BM25Index, HnswIndex, VectorIndex
from core.protocols import Index
from core.settings import BM25_VARIANTS as VARIANTS
from core.text import Analyzer
from core.types import Chunk
from tests.contracts.identifier_index import IdentifierIndex
from tests.fakes import HashEmbedder

MAKERS: dict[str, Callable[[], Index]] = {
    **{variant: (lambda v=variant: BM25Index(variant=v)) for variant in VARIANTS},
    "bm25-words": lambda: BM25Index(Analyzer(tokens="words", stem=False)),
    "exact": lambda: VectorIndex(HashEmbedder(256)),
    "hnsw": lambda: HnswIndex(HashEmbedder(256), ef=20),
    "identifiers": IdentifierIndex,
}

TEXTS = [
    "The pump P-100 leaks at seal S-7",
    "Valve V-200 is closed before the pump P-100 starts",
    "Bearings are changed in spring",
    "The roof of building B-4 was painted",
    "Invoices of supplier F-31 are paid within thirty days",
    "The pump house has a green door",
    "Nobody visits the archive in room R-12",
]


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Callable[[], Index]:
    return MAKERS[request.param]


@pytest.fixture
def index(make: Callable[[], Index]) -> Index:
    made = make()
    made.add_documents(TEXTS)
    return made


def allowed(*positions: int) -> np.ndarray:
    return np.array(positions, dtype=np.int64)


def test_it_offers_the_interface(index: Index) -> None:
    assert isinstance(index, Index)
    assert index.name
    assert len(index) == len(TEXTS)


def test_the_best_chunk_comes_first(index: Index) -> None:
    assert index.search("valve V-200", k=1).positions.tolist() == [1]
    assert index.search("supplier F-31 invoices", k=3).positions[0] == 4


def test_k_is_one_by_default_and_a_limit(index: Index) -> None:
    assert len(index.search("pump P-100")) == 1
    assert len(index.search("pump P-100", k=2)) == 2


def test_k_above_the_size_gives_what_there_is(index: Index) -> None:
    ranking = index.search("pump P-100", k=10_000)
    assert {0, 1} <= set(ranking.positions.tolist()) <= set(range(len(TEXTS)))


@pytest.mark.parametrize("query", [None, 3, b"pump", ["pump"]])
def test_a_query_that_is_no_string_is_a_type_error(index: Index, query: object) -> None:
    with pytest.raises(TypeError):
        index.search(query, k=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_a_value_error(index: Index, k: int) -> None:
    with pytest.raises(ValueError, match=str(k)):
        index.search("pump", k=k)


@pytest.mark.parametrize("k", [1.5, "2", None, True])
def test_k_that_is_no_whole_number_is_a_type_error(index: Index, k: object) -> None:
    with pytest.raises(TypeError):
        index.search("pump", k=k)  # type: ignore[arg-type]


def test_arguments_are_checked_before_there_is_anything_to_search(make: Callable[[], Index]) -> None:
    with pytest.raises(TypeError):
        make().search(None, k=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="0"):
        make().search("pump", k=0)


@pytest.mark.parametrize("query", ["pump P-100", "", "   ", "the of and"])
def test_an_empty_index_finds_nothing(make: Callable[[], Index], query: str) -> None:
    assert len(make().search(query, k=5)) == 0


def test_adding_nothing_changes_nothing(index: Index) -> None:
    before = index.search("pump P-100", k=5)
    index.add_documents([])
    assert len(index) == len(TEXTS)
    assert index.search("pump P-100", k=5) == before


def test_chunks_of_nothing_but_stop_words_can_be_added_and_searched(make: Callable[[], Index]) -> None:
    index = make()
    index.add_documents(["the of and is", "to be or as it was", ""])
    assert len(index) == 3
    assert set(index.search("pump P-100", k=3).positions.tolist()) <= {0, 1, 2}


def test_scores_never_rise_and_positions_occur_once(index: Index) -> None:
    ranking = index.search("the pump P-100 and valve V-200 in spring", k=100)
    assert np.isfinite(ranking.scores).all()
    assert (np.diff(ranking.scores) <= 0).all()
    assert len(set(ranking.positions.tolist())) == len(ranking)


def test_the_first_k_do_not_depend_on_k(index: Index) -> None:
    query = "the pump P-100 and valve V-200"
    whole = index.search(query, k=len(TEXTS))
    for k in range(1, len(TEXTS)):
        assert index.search(query, k=k) == whole.head(k)


def test_equal_texts_tie_in_the_order_they_were_added(make: Callable[[], Index]) -> None:
    index = make()
    index.add_documents(["unrelated A-1"] + ["the same words about P-100"] * 12 + ["other B-2"] * 30)
    for k in (3, 12):
        ranking = index.search("same words about P-100", k=k)
        assert ranking.positions.tolist() == list(range(1, k + 1))
        assert len(set(ranking.scores.tolist())) == 1


def test_what_is_added_is_found_at_once(index: Index) -> None:
    assert 7 not in index.search("gearbox G-55", k=10).positions
    index.add_document("The gearbox G-55 runs hot")
    assert index.search("gearbox G-55", k=1).positions.tolist() == [7]
    index.add_documents(["gearbox G-56", "Gearbox G-57 is new"])
    assert index.search("gearbox G-57", k=1).positions.tolist() == [9]
    assert len(index) == 10


def test_adding_one_by_one_is_adding_all(make: Callable[[], Index]) -> None:
    slow, fast = make(), make()
    for text in TEXTS:
        slow.add_document(text)
        slow.search("pump P-100", k=2)
    fast.add_documents(TEXTS)
    assert slow.search("pump P-100 and valve", k=7) == fast.search("pump P-100 and valve", k=7)


def test_context_and_columns_of_a_chunk_are_searched_with_its_text(make: Callable[[], Index]) -> None:
    index = make()
    index.add_documents(
        [*TEXTS[:3], Chunk("d", 0, 4, "4711", context="About KX-99", columns="pressure")]
    )
    assert index.search("KX-99", k=1).positions.tolist() == [3]


def test_only_allowed_chunks_are_ranked(index: Index) -> None:
    ranking = index.search("pump P-100 valve V-200", k=7, allowed=allowed(1, 3, 4))
    assert ranking.positions[0] == 1
    assert set(ranking.positions.tolist()) <= {1, 3, 4}
    assert len(index.search("pump P-100", k=7, allowed=allowed())) == 0


def test_allowed_restricts_the_search_itself(make: Callable[[], Index]) -> None:
    """A chunk far below the global top k is found when the better ones are not allowed."""
    index = make()
    long = "a long report that names pump P-100 once among other things"
    index.add_documents([*["pump P-100"] * 50, long, *["door"] * 60])
    assert 50 not in index.search("pump P-100", k=5).positions
    assert index.search("pump P-100", k=5, allowed=allowed(50)).positions.tolist() == [50]


def test_a_restricted_search_is_the_whole_search_without_the_others(index: Index) -> None:
    query = "the pump P-100 and valve V-200 of building B-4"
    whole = index.search(query, k=len(TEXTS))
    for positions in ([0], [1, 3], [0, 2, 4, 6], list(range(7))):
        mask = np.isin(np.arange(len(TEXTS)), positions)
        assert index.search(query, k=7, allowed=allowed(*positions)) == whole.within(mask)


WORDS = [f"{part}-{number}" for part in ("valve", "pump", "seal", "gate") for number in range(60)]


@pytest.fixture(scope="module", params=MAKERS)
def large(request: pytest.FixtureRequest) -> Index:
    """4,000 chunks of ten words, eight of them of one of 40 subjects."""
    random = np.random.default_rng(11)
    made = MAKERS[request.param]() if request.param != "hnsw" else HnswIndex(HashEmbedder(256), ef=100)
    subjects = [random.choice(WORDS, 8) for _ in range(40)]
    made.add_documents(
        [
            " ".join([*random.choice(subjects[at % 40], 8), *random.choice(WORDS, 2)])
            for at in range(4_000)
        ]
    )
    return made


@pytest.mark.parametrize("percent", [0.1, 1, 10, 50, 75, 99, 100])
@pytest.mark.parametrize("of_subject", [False, True])
def test_a_restricted_search_finds_what_brute_force_finds(
    large: Index, percent: float, of_subject: bool
) -> None:
    """Chunks allowed at random, or those of the same subjects; scores to the last bit, and recall >= 0.99."""
    random = np.random.default_rng(round(percent * 10))
    wanted, shares = round(4_000 * percent / 100), []
    for query in (" ".join(random.choice(WORDS, 4)) for _ in range(8)):
        order = (
            np.argsort(np.arange(4_000) % 40, kind="stable") if of_subject else random.permutation(4_000)
        )
        only = np.sort(order[:wanted])
        whole = large.search(query, k=4_000)  # as many candidates as chunks: exact in every index
        expected = whole.within(np.isin(np.arange(4_000), only)).head(20)
        found = large.search(query, k=20, allowed=only)
        score = dict(zip(whole.positions.tolist(), whole.scores.tolist(), strict=True))
        assert set(found.positions.tolist()) <= set(only.tolist())
        assert [score[hit.position] for hit in found] == [hit.score for hit in found]
        if not isinstance(large, HnswIndex):
            assert found == expected
        assert len(found) == len(expected)
        shares.append(np.isin(expected.positions, found.positions).mean() if len(expected) else 1)
    assert np.mean(shares) >= 0.99


@pytest.mark.parametrize(
    "query",
    [
        "C++ (fast) [draft] a*b? \\d+ ^x$ {1}",
        "\u202eabc\u202c \x00 x",
        "🇫🇮 👩🏽\u200d🔧",
        "'; DROP TABLE items; --",
        "../../etc",
        "\ud800 lone",
        "P-100 " * 9_000,
    ],
)
def test_odd_queries_are_only_text(index: Index, query: str) -> None:
    ranking = index.search(query, k=3)
    assert len(ranking) <= 3
    assert np.isfinite(ranking.scores).all()


def test_searches_during_additions_see_whole_batches(make: Callable[[], Index]) -> None:
    """Each batch brings two chunks that tie; a search must never see one without the other."""
    index = make()
    index.add_documents([*["door"] * 100, "start S-0", "start S-0"])
    torn: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            found = len(index.search("start S-0 P-100", k=10_000))
            if found % 2:
                torn.append(found)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(40):
        index.add_documents([f"start P-100 number {number}"] * 2)
    done.set()
    for thread in threads:
        thread.join()
    assert len(index.search("start P-100", k=10_000)) >= 80
    if not isinstance(index, IdentifierIndex):  # the example adds chunk by chunk and says so
        assert torn == []


OURS = [name for name in MAKERS if name != "identifiers"]


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize(
    "wrong",
    [
        np.array(
            [True, False, True, False, False, False, False]
        ),  # a mask would pass as positions 0 and 1
        np.array([0, 0, 1]),
        np.array([3, 1]),
        np.array([0.0, 1.5]),
        np.array([[0, 1]]),
    ],
    ids=["mask", "twice", "falling", "fractions", "table"],
)
def test_allowed_that_is_no_ascending_positions_is_a_value_error(name: str, wrong: np.ndarray) -> None:
    made = MAKERS[name]()
    made.add_documents(TEXTS)
    with pytest.raises(ValueError, match="ascending and each once"):
        made.search("pump", k=3, allowed=wrong)
    assert len(made.search("pump", k=3, allowed=np.array([]))) == 0


@pytest.mark.parametrize("name", OURS)
def test_what_is_added_is_looked_at_first(name: str) -> None:
    made = MAKERS[name]()
    made.add_documents(text for text in TEXTS)  # type: ignore[arg-type]
    assert len(made) == len(TEXTS)
    with pytest.raises(TypeError, match="one string"):
        made.add_documents("abc")
    for wrong in (None, 5, b"pump"):
        with pytest.raises(TypeError, match="give a string or a Chunk"):
            made.add_documents(["fine", wrong])  # type: ignore[list-item]
    assert len(made) == len(TEXTS)
    assert made.search("valve V-200", k=1).positions.tolist() == [1]

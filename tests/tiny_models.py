"""Model folders of a few kilobytes, built where a test needs one: no download."""

from __future__ import annotations

from pathlib import Path

_WORDS = [
    "the",
    "of",
    "in",
    "pump",
    "seal",
    "leak",
    "oil",
    "valve",
    "motor",
    "unit",
    "was",
    "is",
    "new",
    "old",
]
_SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789"


def cross_encoder_folder(folder: Path, labels: int = 1, longest: int = 24, seed: int = 7) -> Path:
    """A BERT of one layer with random weights, the same for a seed, that scores pairs of at most
    `longest` tokens. Words it does not know are spelt."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS, *_SIGNS]
    pieces += [f"##{sign}" for sign in _SIGNS]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=longest)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=labels,
        initializer_range=0.5,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertForSequenceClassification(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder

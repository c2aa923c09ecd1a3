"""Make the files of this folder with gensim, which the tests do not need: `pip install gensim==4.4.0`, then run this.

The vectors are those of `GENSIM` in test_embeddings.py.
"""

import json
from pathlib import Path

import numpy as np
from gensim.models import KeyedVectors

HERE = Path(__file__).parent
WORDS = ["the", "naïve", "猫", "</s>"]
VECTORS = np.array([[1, 0.1, -2.5e-7], [1e10, 3, 1 / 3], [0, -0.0, 123456.789], [-1e-38, 0.5, 2]], np.float32)
SENTENCES = [["the", "猫"], ["the", "the", "dog", "naïve"], ["dog"]]
OPTIONS = [
    {},
    {"pre_normalize": False},
    {"post_normalize": True},
    {"weights": True},
    {"weights": True, "pre_normalize": False, "post_normalize": True},
]

kv = KeyedVectors(VECTORS.shape[1])
kv.add_vectors(WORDS, VECTORS)
kv.save_word2vec_format(HERE / "gensim.txt")
kv.save_word2vec_format(HERE / "gensim.txt.gz")
kv.save_word2vec_format(HERE / "gensim.bin", binary=True)
kv.save_word2vec_format(HERE / "gensim_no_header.txt", write_header=False)

means = []
for keys in SENTENCES:
    for options in OPTIONS:
        weights = [0.5, -2, 3, 0.25][: len(keys)] if options.get("weights") else None
        mean = kv.get_mean_vector(keys, **options | {"weights": weights})
        means.append({"keys": keys, "options": options | {"weights": weights}, "mean": mean.tolist()})
(HERE / "gensim_means.json").write_text(json.dumps(means, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

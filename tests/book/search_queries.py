"""What readers type into the search, and the sections that they want: chosen before the search was tried on them.

Where several sections would do, any of them may come first. An address without a fragment is the top of its page.
"""

WANTED = {
    "why divide by sqrt": [
        "self-attention.html#why-divide-by-the-square-root-of-the-width",
        "queries-keys-values.html#the-square-root-derived",
    ],
    "nan": ["masks.html#rows-with-nothing-to-attend-to"],
    "causal": [
        "masks.html#padding-causal-both",
        "masks.html#no-peeking-training-on-all-positions-at-once",
        "masks.html#what-the-causal-mask-hides-from-it",
    ],
    "KV cache": ["generating.html#the-kv-cache"],
    "bahdanau": ["context-vectors.html#look-back-bahdanaus-attention"],
    "self-attention": ["self-attention.html"],
    "query key value": [
        "queries-keys-values.html",
        "queries-keys-values.html#three-matrices",
        "queries-keys-values.html#why-three",
    ],
    "scaled dot product": [
        "self-attention.html#why-divide-by-the-square-root-of-the-width",
        "queries-keys-values.html#the-square-root-derived",
        "queries-keys-values.html",
    ],
    "scaled dot product attention": ["queries-keys-values.html"],
    "exercises masks": ["exercises/05-masking/masking.html"],
    "install": ["install.html", "install.html#install-it-with-pip"],
    "flash attention": ["tiles-and-the-gpu.html", "tiles-and-the-gpu.html#tiles"],
    "atention": [
        "start.html#attention-in-three-lines",
        "self-attention.html",
        "self-attention.html#attention-in-four-lines",
        "index.html",
    ],
    "layer norm": ["transformer.html#layer-norm-by-hand"],
    "rope": ["positions.html#rope-turn-queries-and-keys"],
    "rotary embeddings": ["positions.html#rope-turn-queries-and-keys", "modern-block.html#rotary-positions"],
    "multi head attention": ["many-heads.html", "many-heads.html#multi-head-attention-all-of-it"],
    "grouped query attention": [
        "modern-block.html#grouped-queries",
        "generating.html#fewer-key-heads-than-query-heads",
    ],
    "padding": ["masks.html#padding-in-real-life", "masks.html#padding-causal-both"],
    "softmax overflow": ["self-attention.html#when-the-exponential-overflows"],
    "residual connection": ["transformer.html#the-residual-stream", "transformer.html#without-the-plus-sign"],
    "temperature": ["a-model-that-writes.html#temperature"],
    "top p sampling": ["a-model-that-writes.html#top-k-and-top-p"],
    "speculative decoding": ["a-model-that-writes.html#speculative-decoding"],
    "positional encoding": [
        "positions.html",
        "positions.html#what-we-want-from-a-position-code",
        "positions.html#sinusoids-as-clocks",
        "positions.html#learned-positions",
    ],
    "sliding window": ["generating.html#windows"],
    "cross attention": ["queries-keys-values.html#two-sequences", "transformer.html#encoder-decoder-or-both"],
    "gradient of softmax": [
        "queries-keys-values.html#the-gradient-of-a-softmax",
        "gradients-by-hand.html#through-the-softmax",
    ],
    "vision transformer": ["applications.html#images-patches-as-words"],
    "is attention explanation": ["looking-into-a-real-model.html#is-attention-explanation"],
    "how many parameters": [
        "many-heads.html#counting-parameters-and-multiplications",
        "transformer.html#counting-parameters",
    ],
    "luong": ["context-vectors.html#the-other-order-luongs-attention"],
    "backpropagation": ["gradients-by-hand.html", "gradients-by-hand.html#the-backward-pass"],
    "vit": ["applications.html#images-patches-as-words"],
    "prerequisites": ["start.html"],
    "plagiarism": ["teaching/academic-integrity.html"],
    "quantization": [
        "a-model-that-writes.html#let-it-write",
        "looking-into-a-real-model.html#all-heads-on-your-own-sentence",
    ],
    "license": ["start.html#license-and-citation"],
    "cite": ["start.html#license-and-citation"],
    "dropuot": ["slips.html#dropout-at-test-time", "from-torch.html#dropout"],
}

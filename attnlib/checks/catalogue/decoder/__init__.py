"""The exercises of the assignment 08-decoder: one file each, with inputs, reference and mistakes."""

from attnlib.checks.catalogue.decoder import (
    decoder_logits,
    generate_tokens,
    grouped_query_attention,
    rms_norm,
    rope_attention_with_cache,
    sample,
    swiglu_feed_forward,
)
from attnlib.checks.catalogue.decoder import sections as sections
from attnlib.checks.catalogue.decoder.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

EXERCISES: tuple[Exercise, ...] = tuple(
    module.EXERCISE
    for module in (
        rms_norm,
        swiglu_feed_forward,
        grouped_query_attention,
        rope_attention_with_cache,
        sample,
        generate_tokens,
        decoder_logits,
    )
)

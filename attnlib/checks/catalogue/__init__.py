"""Every exercise and every question of the course, in its order: a folder for each assignment."""

from attnlib.checks.catalogue import (
    context_vectors,
    decoder,
    masking,
    multi_head,
    positions,
    queries_keys_values,
    self_attention,
    slips,
    transformer,
)
from attnlib.checks.exercise import Exercise
from attnlib.checks.options import Question

ASSIGNMENTS = {
    "01-context-vectors": context_vectors,
    "02-self-attention": self_attention,
    "03-queries-keys-values": queries_keys_values,
    "04-multi-head": multi_head,
    "05-masking": masking,
    "06-positions": positions,
    "07-transformer": transformer,
    "08-decoder": decoder,
    "09-slips": slips,
}
CATALOGUE: dict[str, Exercise] = {
    exercise.name: exercise for assignment in ASSIGNMENTS.values() for exercise in assignment.EXERCISES
}
QUESTIONS: dict[str, Question] = {
    question.name: question for assignment in ASSIGNMENTS.values() for question in assignment.QUESTIONS
}

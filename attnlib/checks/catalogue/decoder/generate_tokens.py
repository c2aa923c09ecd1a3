"""generate_tokens(step, prompt, max_new_tokens, *, stop_token, return_prompt): prefill, then one token at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlib.checks.calling.case import Case
from attnlib.checks.calling.generation import Step, call_generate
from attnlib.checks.catalogue.decoder.sections import LOOP, PREFILL
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, STOP, FEW, ASKED = "the loop", "the stop token", "few tokens", "the prompt"
CALLS, UNCHANGED = "what the model reads", "inputs unchanged"
VOCABULARY, STATES = 90, 31
MISTAKES = Mistakes()


def generate_tokens(
    step: Any, prompt: Any, max_new_tokens: int, *, stop_token: int | None = None, return_prompt: bool = False
) -> list[int]:
    """Let a model write: it reads the prompt in one call, then each token that it has chosen."""
    written, new = list[int](), list(prompt)
    while len(written) < max_new_tokens:
        token = step(new)
        written.append(token)
        if token == stop_token:
            break
        new = [token]
    return [*prompt, *written] if return_prompt else written


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: texts of several lengths, a stop token at several places, and few tokens or none."""
    yield _case("a prompt of 3 tokens, and 4 new ones", NUMBERS, rng, 3, 4)
    yield _case("a prompt of 5 tokens, and 7 new ones", NUMBERS, rng, 5, 7)
    yield _case("a prompt of a single token, and 6 new ones", NUMBERS, rng, 1, 6)
    yield _case("a prompt of 8 tokens, longer than the 5 new ones", NUMBERS, rng, 8, 5)
    yield _case("the stop token as the fourth of at most 9", STOP, rng, 4, 9, stops=3)
    yield _case("the stop token as the first of at most 5", STOP, rng, 3, 5, stops=0)
    yield _case("the stop token as the last of at most 6", STOP, rng, 2, 6, stops=5)
    yield _case("a stop token that never comes", STOP, rng, 3, 5, stops=None)
    yield _case("a stop token that is in the prompt", STOP, rng, 4, 6, in_prompt=True)
    yield _case("the stop token 0 as the third of at most 8", STOP, rng, 3, 8, stops=2, zero=True)
    yield _case("a single new token", FEW, rng, 4, 1)
    yield _case("no new tokens", FEW, rng, 3, 0)
    yield _case("return_prompt=True", ASKED, rng, 4, 5, return_prompt=True)
    yield _case("return_prompt=True, and a stop token", ASKED, rng, 3, 8, stops=4, return_prompt=True)
    yield _case("a prompt of 6 tokens and 4 new ones, and what the model reads in each call", CALLS, rng, 6, 4)
    yield _case("the stop token as the third of at most 7, and what the model reads", CALLS, rng, 3, 7, stops=2)
    yield _case("a single new token, and what the model reads", CALLS, rng, 4, 1)
    yield _case("no new tokens, and what the model reads", CALLS, rng, 2, 0)
    yield _case("a prompt that must stay as it is", UNCHANGED, rng, 5, 4, unchanged=True)


def _case(
    name, criterion, rng, length, count, *, stops=-1, in_prompt=False, zero=False, unchanged=False, **options
) -> Case:
    """Return a case whose model first writes the stop token as number ``stops`` of the new tokens, if at all."""
    while True:
        table = rng.permutation(np.arange(1, VOCABULARY))[:STATES]
        prompt = rng.integers(1, VOCABULARY, length).tolist()
        written = generate_tokens(Step(table), prompt, count)
        if len({*written}) == len(written) and not {*written} & {*prompt}:  # whatever is repeated hides mistakes
            break
    if stops != -1:
        options["stop_token"] = VOCABULARY + 5 if stops is None else written[stops]
    if in_prompt:
        options["stop_token"] = prompt[1]
    if zero:
        table = np.where(table == written[stops], 0, table)
        options["stop_token"] = 0
    given = {"prompt": prompt, "max_new_tokens": count}
    reads = criterion == CALLS
    outputs = ("reads", "tokens") if reads else ("tokens",)
    return Case(name, criterion, given, options, {"table": table, "reads": reads}, outputs, unchanged)


def _loop(step, prompt, count, stop_token, *, ends=lambda token, stop: token == stop):
    """Do what is right, and return the new tokens."""
    written, new = list[int](), list(prompt)
    while len(written) < count:
        written.append(step(new))
        if ends(written[-1], stop_token):
            break
        new = written[-1:]
    return written


def _with_prompt(prompt, written, return_prompt):
    return [*prompt, *written] if return_prompt else written


@MISTAKES.add(
    "the prompt is always returned",
    hint="Which tokens has the model written, and which of them do you return?",
    more="With max_new_tokens=4 and without return_prompt, how many tokens should come back?",
    section=LOOP,
)
def prompt_always(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """You return the prompt with the new tokens although return_prompt is False."""
    return [*prompt, *_loop(step, prompt, max_new_tokens, stop_token)]


@MISTAKES.add(
    "the prompt is never returned",
    hint="Where does your function use return_prompt?",
    more="With return_prompt=True the prompt comes first, and the new tokens after it.",
    section=LOOP,
)
def prompt_never(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """You return only the new tokens, although return_prompt=True asks for the prompt as well."""
    return _loop(step, prompt, max_new_tokens, stop_token)


@MISTAKES.add(
    "return_prompt has the opposite effect",
    hint="What does return_prompt=True mean?",
    more="Call your function with return_prompt=True and without, and look at the first token.",
    section=LOOP,
)
def prompt_upside_down(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """The condition is reversed: the prompt is returned without return_prompt, and is missing with it."""
    return _with_prompt(prompt, _loop(step, prompt, max_new_tokens, stop_token), not return_prompt)


@MISTAKES.add(
    "the whole text is read again for each token",
    hint="What has the model kept of the tokens that it has read?",
    more="The model has a cache: what it reads follows what it read before. How many new tokens are there after the "
    "first one was chosen?",
    section=PREFILL,
)
def whole_text_each_time(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """Each call passes the whole text so far. The model remembers it, so it reads the same tokens again.

    After the prompt, pass only the token that was chosen last.
    """
    written: list[int] = []
    while len(written) < max_new_tokens:
        written.append(step([*prompt, *written]))
        if written[-1] == stop_token:
            break
    return _with_prompt(prompt, written, return_prompt)


@MISTAKES.add(
    "the prompt is read token by token",
    hint="How many calls does your function make for a prompt of 5 tokens, before the first new token?",
    more="The model can read many tokens at once, and its matrix products are then far more efficient. Which tokens "
    "are known from the beginning?",
    section=PREFILL,
)
def prompt_token_by_token(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """The tokens are right, but the prompt is read one token at a time. Prefill means: all of it in a single call."""
    if max_new_tokens > 0:
        for token in prompt[:-1]:
            step([token])
    written = _loop(step, prompt[-1:], max_new_tokens, stop_token)
    return _with_prompt(prompt, written, return_prompt)


@MISTAKES.add(
    "the model is called once more than needed",
    hint="How many calls are needed for 4 new tokens?",
    more="Look at the end of your loop. Is there a call whose result is thrown away?",
    section=PREFILL,
)
def one_call_too_many(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """The tokens are right, but the model is called once more than there are new tokens.

    Each call gives one token, and the last of them need not be read.
    """
    written, token = list[int](), step(list(prompt))
    while len(written) < max_new_tokens:
        written.append(token)
        if token == stop_token:
            break
        token = step([token])
    return _with_prompt(prompt, written, return_prompt)


@MISTAKES.add(
    "the model is called even if no token is wanted",
    hint="What should happen with max_new_tokens=0?",
    more="Count the calls for 2, 1 and 0 new tokens.",
    section=PREFILL,
)
def read_for_nothing(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """With max_new_tokens=0, the prompt is read although nothing is to be written. Do not call the model at all."""
    if max_new_tokens == 0:
        step(list(prompt))
    return _with_prompt(prompt, _loop(step, prompt, max_new_tokens, stop_token), return_prompt)


@MISTAKES.add(
    "at least one token is written",
    hint="What should come back with max_new_tokens=0?",
    more="Your first token is chosen before the limit is checked. Count the tokens for 2, 1 and 0 new ones.",
    section=LOOP,
)
def at_least_one(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """With max_new_tokens=0, you return a token all the same: the first one is added before the limit is checked."""
    return _with_prompt(prompt, _loop(step, prompt, max(max_new_tokens, 1), stop_token), return_prompt)


@MISTAKES.add(
    "one token too many",
    hint="Count the tokens that come back with max_new_tokens=4.",
    more="The call that reads the prompt gives a token, too. Does your loop count it?",
    section=LOOP,
)
def one_too_many(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """One token more comes back than max_new_tokens allows. The token after the prompt counts as well."""
    return _with_prompt(prompt, _loop(step, prompt, max_new_tokens + 1, stop_token), return_prompt)


@MISTAKES.add(
    "one token too few",
    hint="Count the tokens that come back with max_new_tokens=4.",
    more="Does your loop run as often as there are new tokens?",
    section=LOOP,
)
def one_too_few(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """One token is missing at the end, although no stop token has come."""
    return _with_prompt(prompt, _loop(step, prompt, max(max_new_tokens - 1, 0), stop_token), return_prompt)


@MISTAKES.add(
    "the limit counts the prompt",
    hint="Is max_new_tokens the length of the text, or of what is added to it?",
    more="With a prompt of 8 tokens and max_new_tokens=5, how many tokens should come back?",
    section=LOOP,
)
def limit_on_all(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """You stop when prompt and new tokens together reach the limit. It counts only the new ones."""
    count = max(max_new_tokens - len(prompt), 0)
    return _with_prompt(prompt, _loop(step, prompt, count, stop_token), return_prompt)


@MISTAKES.add(
    "stop_token is not used",
    hint="Where does your loop use stop_token?",
    more="After the stop token, nothing more should be written, and the model should not be called again.",
    section=LOOP,
)
def no_stop(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """The loop always runs to its limit. It should end as soon as the stop token has been written."""
    return _with_prompt(prompt, _loop(step, prompt, max_new_tokens, None), return_prompt)


@MISTAKES.add(
    "the stop token is left out",
    hint="Is the stop token the last token of the text, or the first that is not part of it?",
    more="The task says which. Look at the order of two lines: the test, and the one that adds the token.",
    section=LOOP,
)
def stop_left_out(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """The text ends at the right place, but without its stop token, which the task asks for as its last token."""
    written = _loop(step, prompt, max_new_tokens, stop_token)
    written = written[:-1] if written and written[-1] == stop_token else written
    return _with_prompt(prompt, written, return_prompt)


@MISTAKES.add(
    "one more token after the stop token",
    hint="Which token do you compare with the stop token: the newest, or the one before?",
    more="Write down the order of four steps: call, add, compare, end. When is the stop token noticed?",
    section=LOOP,
)
def one_after_stop(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """You notice the stop token only after another token has been written after it."""
    written, new = list[int](), list(prompt)
    while len(written) < max_new_tokens and stop_token not in written[:-1]:
        written.append(step(new))
        new = written[-1:]
    return _with_prompt(prompt, written, return_prompt)


@MISTAKES.add(
    "a stop token in the prompt ends the text",
    hint="In which tokens do you look for the stop token?",
    more="A prompt may contain the stop token, for example between two texts. Only a new token ends the text.",
    section=LOOP,
)
def stop_in_prompt(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """The stop token is also looked for in the prompt, and then hardly anything is written. Look at new tokens only."""
    written, new = list[int](), list(prompt)
    while len(written) < max_new_tokens:
        written.append(step(new))
        if stop_token in [*prompt, *written]:
            break
        new = written[-1:]
    return _with_prompt(prompt, written, return_prompt)


@MISTAKES.add(
    "the stop token 0 is treated as None",
    hint="Is 0 true or false?",
    more="A test of the form “if stop_token” fails for one token of the vocabulary. What should be compared with None?",
    section=LOOP,
)
def zero_is_false(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """Token 0 never ends your text: the test takes 0 for “no stop token”. Compare with None instead."""
    return _with_prompt(prompt, _loop(step, prompt, max_new_tokens, stop_token or None), return_prompt)


@MISTAKES.add(
    "the prompt is read again and again",
    hint="What does the model read in your second call?",
    more="Print what you pass to the model, call by call. After the prompt, it should be the newest token each time.",
    section=PREFILL,
)
def prompt_again(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """Each call passes the prompt once more, and never a token that was written."""
    written: list[int] = []
    while len(written) < max_new_tokens:
        written.append(step(list(prompt)))
        if written[-1] == stop_token:
            break
    return _with_prompt(prompt, written, return_prompt)


@MISTAKES.add(
    "the newest token is read twice",
    hint="How many tokens does the model read in your second call, and which?",
    more="Print what you pass to the model, call by call. Each token should be read once.",
    section=PREFILL,
)
def read_twice(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """After the first new token you pass the last two tokens each time. One of them has been read before."""
    written, new = list[int](), list(prompt)
    while len(written) < max_new_tokens:
        written.append(step(new))
        if written[-1] == stop_token:
            break
        new = [*prompt, *written][-2:]
    return _with_prompt(prompt, written, return_prompt)


@MISTAKES.add(
    "only the last token of the prompt is read",
    hint="What does the model know of the prompt when it chooses the first new token?",
    more="Print what you pass in the first call. The whole prompt should be in it.",
    section=PREFILL,
)
def last_of_prompt(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """The first call passes only the last token of the prompt, so the model has not read the tokens before it."""
    return _with_prompt(prompt, _loop(step, prompt[-1:], max_new_tokens, stop_token), return_prompt)


@MISTAKES.add(
    "only the last token is returned",
    hint="What do you keep of the tokens that were written before the last one?",
    more="With max_new_tokens=4, how many tokens should come back?",
    section=LOOP,
)
def last_alone(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    """You return only the last token. Return all new tokens, in their order."""
    return _with_prompt(prompt, _loop(step, prompt, max_new_tokens, stop_token)[-1:], return_prompt)


EXERCISE = Exercise(
    name="generate_tokens",
    reference=generate_tokens,
    outputs={"reads": (), "tokens": ()},
    rubric={NUMBERS: 4, STOP: 3, FEW: 1, ASKED: 1, CALLS: 2, UNCHANGED: 1},
    section=LOOP,
    advice="Print what you pass to the model in each call, and what it returns: for 4 new tokens there are four calls, "
    "the first with the whole prompt and each of the others with the token before.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    call=call_generate,
    backends=("numpy",),
    solved_by=("attnlib.generate", "attnlib.generate_speculatively"),
)

"""What is asked of whom, what is compared, and what is never named."""

import functools

import numpy as np
import pytest
import torch
from torch import nn

import attnlib
import attnlib.numpy
import attnlib.torch
from attnlib.checks import check, examine
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.catalogue.gradients import GRADIENTS
from attnlib.checks.evaluation import Evaluation


def scores(query, key):
    return query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5


def watched(name, implementation):
    """Examine an implementation; return the report and the keyword arguments that it was given."""
    seen = []

    @functools.wraps(implementation)
    def watch(*arrays, **given):
        seen.append(given)
        return implementation(*arrays, **given)

    return examine(name, watch, seed=0), seen


# Arguments that the exercise does not ask for -----------------------------------------------------------------------


def test_an_argument_that_is_not_asked_for_is_tried_only_where_there_is_one():
    def plain(query, key, value, *, scale=None):
        return attnlib.scaled_dot_product_attention(query, key, value, scale=scale)

    def claims(query, key, value, attn_mask=None, *, scale=None):
        return attnlib.scaled_dot_product_attention(query, key, value, scale=scale)  # the mask is not looked at

    report, seen = watched("scaled_dot_product_attention", plain)
    assert report.passed
    assert not any("attn_mask" in given for given in seen)
    report, seen = watched("scaled_dot_product_attention", claims)
    assert any("attn_mask" in given for given in seen)
    assert "attn_mask" in report.remark.failure.case.options


def of_the_annotated_transformer(query, key, value, mask=None, dropout=None):
    """Attention as it stands in Rush's Annotated Transformer."""
    scores = torch.matmul(query, key.transpose(-2, -1)) / query.size(-1) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value), p_attn


def of_torch_s_documentation(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    """The reference that torch documents for scaled_dot_product_attention."""
    L, S = query.size(-2), key.size(-2)
    scale_factor = 1 / query.size(-1) ** 0.5 if scale is None else scale
    attn_bias = torch.zeros(L, S, dtype=query.dtype)
    if is_causal:
        assert attn_mask is None
        temp_mask = torch.ones(L, S, dtype=torch.bool).tril(diagonal=0)
        attn_bias.masked_fill_(temp_mask.logical_not(), float("-inf"))
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_bias.masked_fill_(attn_mask.logical_not(), float("-inf"))
        else:
            attn_bias = attn_mask + attn_bias
    attn_weight = torch.softmax(query @ key.transpose(-2, -1) * scale_factor + attn_bias, dim=-1)
    return torch.dropout(attn_weight, dropout_p, train=True) @ value


def with_zeros_and_ones(query, key, value, mask=None):
    """A mask of the student's own, in which 1 means that a query may not look."""
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    weights = attnlib.softmax(scores if mask is None else scores - 1e9 * mask)
    return weights @ value, weights


OF_ITS_OWN = {
    "the Annotated Transformer": ("attention", "torch", of_the_annotated_transformer, "mask"),
    "torch's documentation": ("scaled_dot_product_attention", "torch", of_torch_s_documentation, "attn_mask"),
    "a mask the other way round": ("attention", "numpy", with_zeros_and_ones, "mask"),
}


@pytest.mark.parametrize("source", OF_ITS_OWN)
def test_an_argument_that_no_notebook_asks_for_is_remarked_upon_and_costs_nothing(source):
    name, backend, implementation, argument = OF_ITS_OWN[source]
    report = examine(name, implementation, backend=backend, seed=0)
    assert report.passed
    assert report.score == 1
    assert report.mistake is None
    assert argument in report.remark.failure.case.options
    said = f"costs no points. Your function also takes {argument}, which the task does not ask for"
    for shown in (report.message, report._repr_mimebundle_()["text/html"]):
        assert said in shown
        assert report.remark.failure.case.name in shown


def test_a_remark_waits_until_all_that_is_asked_for_is_right():
    def unscaled(query, key, value, mask=None):
        weights = attnlib.softmax(query @ key.swapaxes(-1, -2))
        return weights @ value, weights

    report = examine("attention", unscaled, seed=0)
    assert report.mistake == "no-scale"
    assert report.remark is None
    assert not any("mask" in name for name in report.failure.others)


def test_an_argument_that_one_notebook_asks_for_counts_there_even_if_it_is_left_out():
    class Alone(Attention):
        def forward(self, query, key=None, value=None, *, need_weights=False):
            return super().forward(query, key, value)

    class Without(Attention):
        def forward(self, query, key=None, value=None):
            return super().forward(query, key, value)

    reports = [examine("MultiHeadAttention", kind, seed=0) for kind in (Alone, Without)]
    # The criteria weigh 4 + 1 + 1 + 1 + 1 = 8, and so do the gradients, which are right. Only need_weights is lost: 1
    # of 16.
    assert [report.score for report in reports] == [15 / 16] * 2
    assert "need_weights" in reports[1].title
    other = examine("MultiHeadAttention", Without, seed=0, unasked="need_weights")
    assert (other.score, other.remark) == (1, None)


def test_an_argument_that_this_notebook_does_not_ask_for_costs_nothing():
    class Alone(Attention):
        def forward(self, query, key=None, value=None, *, need_weights=False):
            return super().forward(query, key, value)

    report = examine("MultiHeadAttention", Alone, seed=0, unasked="need_weights")
    assert report.score == 1
    assert "need_weights" in report.remark.failure.case.options
    with pytest.raises(ValueError, match=r"'attn_mask'.* that count: 'need_weights'"):
        examine("MultiHeadAttention", Alone, unasked="attn_mask")


def test_a_mask_that_this_task_does_not_ask_for_is_not_counted_among_its_cases():
    def unscaled(query, key, value, mask=None):
        weights = attnlib.softmax(query @ key.swapaxes(-1, -2))
        return weights @ value, weights

    with_mask = examine("attention", unscaled, seed=0).failure
    without = examine("attention", lambda query, key, value: unscaled(query, key, value), seed=0).failure
    assert (with_mask.right, with_mask.asked) == (without.right, without.asked)
    remark = examine("attention", with_zeros_and_ones, seed=0).remark.failure
    assert (remark.right, remark.asked) == (0, 3), "of a remark, the cases with a mask"


def test_a_mask_of_a_later_task_may_call_what_this_task_forbids(capsys):
    def attend(query, key, value, mask=None):
        if mask is not None:
            return attnlib.attention(query, key, value, mask=mask)
        weights = attnlib.softmax(query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5)
        return weights @ value, weights

    assert check("attention", attend, seed=0) == 1
    assert "attnlib.attention" not in capsys.readouterr().out


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("name", CATALOGUE)
def test_what_does_not_count_is_asked_last(name, backend):
    if backend in CATALOGUE[name].backends:
        evaluation = Evaluation(CATALOGUE[name], backend, 0)
        counts = [evaluation.grades(i) for i in range(len(evaluation.cases))]
        assert counts == sorted(counts, reverse=True)


def test_a_function_that_lacks_what_is_asked_for_is_told_which_argument():
    report = examine("scaled_dot", lambda query, key: scores(query, key), seed=0)
    assert 0 < report.score < 1
    assert report.title == "your function has no argument scale"


@pytest.mark.parametrize("name", CATALOGUE)
def test_points_hang_on_what_is_asked_of_everybody_or_by_a_notebook(name):
    exercise = CATALOGUE[name]
    cases = list(exercise.inputs(np.random.default_rng(0)))
    assert set(exercise.rubric) == {case.criterion for case in cases if exercise.grades(case)}
    options = {*exercise.graded_options, *exercise.ungraded_options}
    optional = {c.criterion for c in cases if options & (c.options.keys() | c.setup.keys())}
    assert next(iter(exercise.rubric)) not in optional, "the first criterion is asked of everybody"


# Names --------------------------------------------------------------------------------------------------------------


def test_shapes_that_never_fit_are_not_named_after_one_of_the_mistakes_that_raise():
    def misfit(query, key, value):
        raise ValueError("operands could not be broadcast together with shapes (1,2) (3,4)")

    for name in ("attention", "masked_attention"):
        report = examine(name, lambda q, k, v, mask=None: misfit(q, k, v), seed=0)
        assert report.mistake is None
        assert report.title == "two shapes do not fit together"
        assert "arrays of shapes (1, 2) and (3, 4) do not fit together" in report.message


def test_a_known_mistake_with_another_mistake_later_keeps_its_name():
    def unscaled_and_changes_its_input(query, key, value):
        out = attnlib.attention(query * query.shape[-1] ** 0.5, key, value)
        value += 1
        return out

    report = examine("attention", unscaled_and_changes_its_input, seed=0)
    assert report.mistake == "no-scale"
    assert report.failure.others
    assert "for another reason" in report.message


def test_later_cases_that_fail_for_the_same_reason_are_reported_once():
    mistake = next(m for m in CATALOGUE["attention"].mistakes if m.id == "no-scale")
    report = examine("attention", mistake.implementation, seed=0)
    assert report.failure.others == ()
    assert "look again" not in report.message


def test_a_width_written_into_the_code_is_not_blamed_on_float32():
    def of_width_four(query, key, value):
        weights = attnlib.softmax(query @ key.swapaxes(-1, -2) / 4**0.5)
        return weights @ value, weights

    report = examine("attention", of_width_four, seed=0)
    assert report.score == 0
    assert "float32" not in report.failure.case.name
    assert "(5, 3)" in report.failure.case.name


def test_a_dimension_is_called_lost_only_where_nothing_else_is_missing_in_any_case():
    def weights_of_the_last_query(query, key, value):
        context, weights = attnlib.attention(query, key, value)
        return context, weights[..., -1, :]

    def squeezed(query, key, value):
        return tuple(x.squeeze() for x in attnlib.attention(query, key, value))

    assert examine("attention", weights_of_the_last_query, seed=0).mistake is None
    assert examine("attention", squeezed, seed=0).mistake == "squeezed"


@pytest.mark.parametrize("leading", [list, tuple])
def test_a_shape_within_a_shape_is_named(leading):
    def nested(query, key, value):
        front = leading(query[:-2])
        return (front, query[-2], key[-2]), [front, query[-2], value[-1]]

    assert examine("attention_shapes", nested, seed=0).mistake == "nested"


@pytest.mark.parametrize(("number", "name"), [(0, "scores-alone"), (1, "output-alone")])
def test_one_shape_for_two_is_named(number, name):
    reference = CATALOGUE["attention_shapes"].reference
    assert examine("attention_shapes", lambda *shapes: reference(*shapes)[number], seed=0).mistake == name


def test_a_detour_through_numpy_is_no_matter_of_dtypes():
    def through_numpy(query, key, value):
        scores = torch.tensor(scaled(query.detach().numpy(), key.detach().numpy()))
        weights = scores.softmax(-1)
        return weights @ value, weights

    def scaled(query, key):
        return (query @ key.swapaxes(-1, -2)).astype(np.float64) / np.sqrt(query.shape[-1])

    assert examine("attention", through_numpy, backend="torch", seed=0).mistake == "no-gradient"


def test_a_boolean_mask_with_a_large_number_is_told_of_empty_rows_and_not_of_masks_of_numbers():
    def large(query, key, value, attn_mask=None, *, scale=None):
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        scores = query @ key.swapaxes(-1, -2) * scale
        return attnlib.softmax(scores if attn_mask is None else np.where(attn_mask, scores, -1e9)) @ value

    remark = examine("scaled_dot_product_attention", large, seed=0).remark
    assert "nothing" in remark.failure.case.name
    assert remark.failure.case.options["attn_mask"].dtype == bool


# Gradients ----------------------------------------------------------------------------------------------------------


def test_gradients_are_asked_for_in_torch_of_the_plain_case_and_of_those_marked():
    for name in ("attention", "luong_step"):
        evaluation = Evaluation(CATALOGUE[name], "torch", 0)
        asked = [case for case in evaluation.cases if case.criterion == GRADIENTS]
        marked = [
            n for n, case in enumerate(CATALOGUE[name].inputs(np.random.default_rng(0))) if case.gradients or n == 1
        ]
        assert len(asked) == len(marked) >= 1
        assert all(case.upstream for case in asked)
    assert not [case for case in Evaluation(CATALOGUE["attention"], "numpy", 0).cases if case.criterion == GRADIENTS]


def test_a_cut_gradient_sends_its_reader_to_the_chapter_of_the_exercise():
    def cut(x, h, *weights):
        return attnlib.rnn_cell(x.detach(), h, *weights)

    report = examine("rnn_cell", cut, backend="torch", seed=0)
    assert report.mistake == "no-gradient"
    assert report.section.file == "book/context-vectors.md"


# Classes ------------------------------------------------------------------------------------------------------------


class Attention(nn.Module):
    """Multi-head attention as a student writes it."""

    scale_by = "head"

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (
            p(x).unflatten(-1, (self.num_heads, -1)).transpose(-2, -3)
            for p, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        width = q.shape[-1] if self.scale_by == "head" else query.shape[-1]
        weights = (q @ k.mT / width**0.5).softmax(-1)
        out = self.out_proj((weights @ v).transpose(-2, -3).flatten(-2))
        return (out, weights) if need_weights else out


class WrongScale(Attention):
    scale_by = "all"


class Renamed(Attention):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.query = self.q_proj
        del self.q_proj


class WithBuffer(Attention):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.register_buffer("never_needed", torch.ones(3))


class Frozen(Attention):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        with torch.no_grad():
            return super().forward(query, key, value, need_weights=need_weights)


@pytest.mark.parametrize("kind", [Attention, WithBuffer, attnlib.torch.MultiHeadAttention])
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_a_torch_module_is_examined_in_torch_whatever_was_said(kind, backend):
    report = examine("MultiHeadAttention", kind, backend=backend, seed=0)
    assert report.passed, report.message
    assert report.backend == "torch"


def test_a_numpy_class_is_examined_in_numpy():
    assert examine("MultiHeadAttention", attnlib.numpy.MultiHeadAttention, seed=0).backend == "numpy"


def test_a_mistake_in_a_torch_module_is_named():
    report = examine("MultiHeadAttention", WrongScale, backend="torch", seed=0)
    assert report.score < 1
    assert report.mistake is not None
    assert "scale" in report.named.title or "embed" in report.named.title or "width" in report.named.title


def test_parameters_of_other_names_are_told():
    report = examine("MultiHeadAttention", Renamed, backend="torch", seed=0)
    assert report.score == 0
    assert "the class has no q_proj and an unexpected query among its parameters" in report.message
    assert report.title == "the parameters of your class do not match the weights that it is given"


def test_a_module_through_which_no_gradient_flows_is_told():
    report = examine("MultiHeadAttention", Frozen, backend="torch", seed=0)
    assert report.mistake == "no-gradient"


def test_a_class_without_weights_to_load_is_told_what_it_should_be():
    class Bare:
        def __init__(self, embed_dim, num_heads):
            pass

    report = examine("MultiHeadAttention", Bare, seed=0)
    assert "derive it from torch.nn.Module" in report.message


def test_an_object_in_place_of_a_class_is_told_so():
    report = examine("MultiHeadAttention", Attention(4, 2), backend="torch", seed=0)
    assert "an object of the class Attention was passed: pass the class itself" in report.message


# Other kinds of answers ---------------------------------------------------------------------------------------------


def test_a_mask_has_to_be_boolean():
    report = examine("causal_mask", lambda T, S=None, *, q_offset=0: attnlib.causal_mask(T, S, q_offset=q_offset) * 1.0)
    assert not report.passed
    assert "dtype" in report.message or report.mistake is not None


def test_a_mask_that_nobody_foresaw_is_described_in_places():
    def corner(T, S=None, *, q_offset=0):
        mask = attnlib.causal_mask(T, S, q_offset=q_offset)
        if mask.size > 6:
            mask[-1, 0] ^= True
            mask[0, -1] ^= True
        return mask

    report = examine("causal_mask", corner, seed=0)
    assert report.mistake is None
    assert "place" in report.message or "True" in report.message


def test_numbers_and_tuples_are_compared_as_they_are_and_shown_as_they_are():
    report = examine("attention_cost", lambda T, S, D, D_v: (7, T * S), seed=0)
    assert report.score == 0
    assert "multiplications is 7, not" in report.title
    assert examine("attention_cost", lambda T, S, D, D_v: [T * S * (D + D_v), S * T], seed=0).passed


def test_an_exercise_that_is_asked_in_numpy_alone_says_so():
    with pytest.raises(ValueError, match="causal_mask is only for numpy"):
        examine("causal_mask", attnlib.causal_mask, backend="torch")

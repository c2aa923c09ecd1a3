import dataclasses
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.class_report.common_mistakes import common_mistakes
from grading.class_report.item_analysis import ENOUGH, Item, analyse_items, readable
from grading.outcome import Finding, Outcome
from grading.report import Row

WORTH = (4.0, 1.0, 3.0)


def rows(scores, worth=WORTH, verdict="graded"):
    questions = "abcdefgh"[: len(worth)]
    return [
        Row(Outcome(f"s{i}", verdict), dict(zip(questions, zip(line, worth, strict=True), strict=True)), 0, ())
        for i, line in enumerate(scores)
    ]


def test_numbers_that_can_be_worked_out_by_hand():
    # a: 1, 1, 0, 0 of 1; the rest (b and c): 2, 0, 0, 0 of 2. Mean 1/2; the deviations of a are ±1/2, those of the rest
    # 3/4, -1/4, -1/4, -1/4: their products sum to 1/2, so r = (1/2) / sqrt(1 * 3/4) = 1 / sqrt(3).
    a, b, c = analyse_items(rows([(1, 1, 1), (1, 0, 0), (0, 0, 0), (0, 0, 0)], (1, 1, 1)))
    assert a.difficulty == 0.5
    assert a.discrimination == pytest.approx(1 / math.sqrt(3))
    assert (b.difficulty, c.difficulty) == (0.25, 0.25)


def test_the_rest_is_without_the_question_itself():
    # With the question in its own sum, the correlation would be positive.
    a, b = analyse_items(rows([(4, 0), (0, 1)], (4, 1)))
    assert a.discrimination == b.discrimination == -1


@settings(max_examples=50, derandomize=True, database=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 60))
def test_difficulty_and_discrimination_are_those_of_numpy(seed, n):
    scores = np.random.default_rng(seed).integers(0, 5, (n, 3)) / 4 * WORTH
    for i, item in enumerate(analyse_items(rows(scores.tolist()))):
        rest = np.delete(scores, i, axis=1).sum(1)
        assert item.n == n
        assert item.difficulty == pytest.approx(scores[:, i].mean() / WORTH[i])
        if item.discrimination is None:
            assert np.ptp(scores[:, i]) == 0 or np.ptp(rest) == 0
        else:
            assert item.discrimination == pytest.approx(np.corrcoef(scores[:, i], rest)[0, 1])


def test_for_right_and_wrong_it_is_the_point_biserial_correlation():
    own, rest = np.array([1, 0, 1, 1, 0, 0, 1]), np.array([3, 1, 2, 3, 0, 2, 1])
    item, _ = analyse_items(rows(zip(own.tolist(), rest.tolist(), strict=True), (1, 3)))
    apart, right = rest[own == 1].mean() - rest[own == 0].mean(), own.mean()
    assert item.discrimination == pytest.approx(apart / rest.std() * math.sqrt(right * (1 - right)))


SHARES = st.floats(0, 1).map(lambda x: round(x, 3))
CLASS = st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=2, max_size=12)


@settings(max_examples=50, derandomize=True, database=None)
@given(CLASS)
def test_the_numbers_keep_within_their_bounds(shares):
    for item in analyse_items(rows([[s * w for s, w in zip(line, WORTH, strict=True)] for line in shares])):
        assert 0 <= item.difficulty <= 1 + 1e-12
        assert item.discrimination is None or -1 <= item.discrimination <= 1


@settings(max_examples=50, derandomize=True, database=None)
@given(CLASS, st.randoms())
def test_the_order_of_the_students_does_not_matter(shares, random):
    shuffled = random.sample(shares, len(shares))
    for one, other in zip(analyse_items(rows(shares)), analyse_items(rows(shuffled)), strict=True):
        assert one.discrimination == pytest.approx(other.discrimination, abs=1e-6)
        assert one.difficulty == pytest.approx(other.difficulty)


@settings(max_examples=50, derandomize=True, database=None)
@given(CLASS, st.sampled_from([0.5, 2, 8]))
def test_nor_does_it_whether_everything_counts_twice(shares, factor):
    double = rows([[s * factor for s in line] for line in shares], [w * factor for w in WORTH])
    for one, other in zip(analyse_items(rows(shares)), analyse_items(double), strict=True):
        assert one.difficulty == pytest.approx(other.difficulty)
        assert one.discrimination == pytest.approx(other.discrimination, abs=1e-6)


def test_where_everybody_earned_the_same_it_is_undefined_and_says_so():
    a, b, c = analyse_items(rows([(0.1, 0.2, 0.3), (0.1, 0.3, 0.2), (0.1, 0.2, 0.3)], (1, 1, 1)))
    assert (a.discrimination, a.note) == (None, "undefined: everybody earned the same")
    assert b.discrimination == c.discrimination == pytest.approx(-1)
    (alone,) = analyse_items(rows([(1,), (0,)], (1,)))
    assert (alone.discrimination, alone.note) == (None, "undefined: fewer than two answers to compare")
    a, _ = analyse_items(rows([(1, 1), (0, 1)], (1, 1)))
    assert (a.discrimination, a.note) == (None, "undefined: everybody earned the same on the rest")


def test_rounding_makes_no_difference_where_there_is_none():
    # 0.1 + 0.2 and 0.3 + 0 differ in the last bit.
    a, *_ = analyse_items(rows([(1, 0.1, 0.2), (0, 0.3, 0)], (1, 1, 1)))
    assert a.discrimination is None


@pytest.mark.parametrize(("n", "flags"), [(ENOUGH, ("low discrimination",)), (ENOUGH - 2, ())])
def test_a_weak_question_is_flagged_where_there_are_answers_enough_to_say_so(n, flags):
    item, *_ = analyse_items(rows([(i % 2, -(i % 2) + 1, i % 4 / 4) for i in range(n)], (1, 1, 1)))
    assert item.discrimination < 0.1
    assert item.flags == flags
    assert item.note == ("" if flags else f"not judged: {n} answers, fewer than {ENOUGH}")


def test_from_so_many_answers_on_a_good_question_is_seldom_flagged_by_chance():
    # A correlation of 0.4 comes out below 0.1, by Fisher's z.
    def chance(n):
        return NormalDist().cdf((math.atanh(0.1) - math.atanh(0.4)) * math.sqrt(n - 3))

    assert chance(ENOUGH) < 0.05 < chance(ENOUGH - 2)


@pytest.mark.parametrize(
    ("right", "flags"), [(29, ("hard",)), (30, ()), (80, ()), (81, ("easy",)), (0, ("hard",)), (100, ("easy",))]
)
def test_a_question_outside_of_the_band_is_flagged(right, flags):
    (item,) = analyse_items(rows([(float(i < right),) for i in range(100)], (1,)))
    assert item.flags == flags


def test_answers_that_wait_for_a_person_do_not_count():
    one, two, three = rows([(4, 1, 0), (2, 0, 3), (0, 1, 1)])
    waiting = dataclasses.replace(one, to_read=1, unread=("c",))
    a, _, c = analyse_items([waiting, two, three])
    assert (c.n, c.difficulty) == (2, pytest.approx(4 / 6))
    # For a, what is not read counts neither as right nor as wrong: the rest of the first one is 1 of 1 point.
    assert a.discrimination == pytest.approx(np.corrcoef([4, 2, 0], [1, 3 / 4, 2 / 4])[0, 1])


@pytest.mark.parametrize("verdict", ["missing", "unreadable", "infrastructure"])
def test_who_answered_nothing_says_nothing_about_a_question(verdict):
    there = rows([(4, 1, 3), (2, 0, 0), (1, 1, 1)])
    assert analyse_items([*there, *rows([(0, 0, 0)], verdict=verdict)]) == analyse_items(there)
    assert not readable(rows([(0, 0, 0)], verdict=verdict))


def test_questions_without_points_are_left_out_and_nobody_answers_nothing():
    (a,) = analyse_items(rows([(1, 0), (0, 0)], (1, 0)))
    assert a.question == "a"
    (nobody,) = analyse_items(rows([(0,)], (1,), "missing"))
    assert nobody == Item("a", 1, 0, None, None, (), "undefined: fewer than two answers to compare")


def found(student, *findings):
    return Row(Outcome(student, "graded", findings=findings), {}, 0, ())


AXIS = Finding("softmax", "first-axis", "the wrong axis", "“Softmax” in the chapter “…”", "a.html#softmax")


def test_students_are_counted_and_not_how_often_each_made_it():
    (mistake,) = common_mistakes([found("bob", AXIS, AXIS), found("ada", AXIS), found("zoe")])
    assert mistake.students == ("ada", "bob")
    assert (mistake.section, mistake.link) == (AXIS.section, AXIS.link)


def test_the_most_frequent_mistake_comes_first():
    other = Finding("dot", "transposed", "transposed")
    assert [m.mistake for m in common_mistakes([found("a", other), found("b", other, AXIS), found("c", other)])] == [
        "transposed",
        "first-axis",
    ]


def test_wrong_answers_without_a_name_belong_together_by_their_title():
    wrong, error = Finding("dot", None, "wrong numbers"), Finding("dot", None, "raised an exception")
    twice, once = common_mistakes([found("a", wrong), found("b", wrong), found("c", error)])
    assert (twice.title, len(twice.students), once.title) == ("wrong numbers", 2, "raised an exception")


def test_the_same_mistake_in_two_questions_is_two():
    both = [dataclasses.replace(AXIS, question=name) for name in ("softmax", "softmax (torch)")]
    assert len(common_mistakes([found("a", *both)])) == 2


def test_the_section_is_that_of_a_finding_that_has_one():
    (mistake,) = common_mistakes([found("a", dataclasses.replace(AXIS, section="", link="")), found("b", AXIS)])
    assert mistake.section == AXIS.section

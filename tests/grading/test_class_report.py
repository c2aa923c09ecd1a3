"""The page an instructor opens: its numbers, its escapes, and how it reads on a phone, in the dark, by ear."""

import json
import re
from itertools import combinations
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import tinycss2
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError
from nbformat.v4 import new_code_cell, new_notebook, new_output

from attnlib.checks.report import MIME_TYPE
from grading.class_report.figures import LEFT, RADIUS, RIGHT, apart, bins, histogram, scatter
from grading.class_report.item_analysis import Item
from grading.class_report.page_data import page as page_of
from grading.class_report.render import render
from grading.class_report.similarity import Pair, Passage, SimilarityReport
from grading.class_report.style import CLASS_REPORT_CSS
from grading.outcome import Finding, Outcome, findings
from grading.report import Row
from grading.text import printable
from grading.verdict import Verdict

EVIL = "<script>alert('x')</script><img src=x onerror=\"a()\">&\u202e\x1b]'\""
AXIS = Finding("softmax", "first-axis", "the wrong axis", "“Softmax” in the chapter “One”", "book/one.html#softmax")
LOOP = Finding("dot", None, "raised an exception")
PAIR = Pair("ada", "s05", 0.91, 217, 180, (Passage(60, "softmax", "def f(x):\n    return x < 1", "dot", "g = 2"),))
NONE = SimilarityReport(0, (), ())


def row(student, a, b, verdict="graded", findings=(), flags=(), unread=(), feedback=()):
    scores = {"a-check": (a, 4.0), "b-check": (b, 2.0), "essay": (0.0 if unread else b / 2, 1.0)}
    return Row(Outcome(student, verdict, "", findings, "", flags), scores, len(unread), feedback, unread)


def many(n=60):
    return [
        row(
            f"s{i:02}",
            i % 5,
            i * 7 % 3,
            findings=(AXIS,) * (i % 3) + (LOOP,) * (i % 4 == 0),
            unread=("essay",) * (i < 9),
        )
        for i in range(n)
    ]


@pytest.fixture
def page(tmp_path):
    """Write a page and return what is in it."""

    def write(rows, alike=NONE, book="", title=""):
        folder = tmp_path / "reports"
        text = page_of(rows, "02-self-attention", folder, alike, book=book, title=title)
        folder.mkdir(exist_ok=True)
        (folder / "grades.html").write_text(text, encoding="utf-8")
        return BeautifulSoup(text, "html.parser")

    return write


def headline(soup):
    return {box.dt.text: box.dd.text for box in soup.select(".figures div")}


def body(table):
    return [[cell.get_text(" ") for cell in line.select("th, td")] for line in table.select("tbody tr")]


def table(soup, caption):
    return next(one for one in soup.select("table") if one.caption.text == caption)


def test_the_headline_figures(page):
    flagged = row("ada", 4, 2, flags=("look",))
    rows = [flagged, row("bob", 0, 1, unread=("essay",)), row("cem", 4, 0), row("zoe", 0, 0, "missing")]
    assert headline(page(rows, SimilarityReport(3, (), (PAIR,)))) == {
        "Students": "4 1 without a readable submission",
        "Mean": "4.0 of 7 points",  # of 7, 1 and 4: who handed nothing in does not count
        "Median": "4.0 of 7 points",
        "Answers to read": "1 to be marked by hand",
        "Flagged": "1 to look at",
        "Alike": "1 pair",
    }


@settings(max_examples=50, derandomize=True, database=None)
@given(st.lists(st.integers(0, 1000).map(lambda n: n / 1000)))
def test_the_histogram_is_that_of_numpy(shares):
    edges = np.arange(11) / 10
    assert bins(shares) == np.histogram(shares, edges)[0].tolist()


def test_scores_beyond_full_marks_belong_to_the_last_bar():
    assert bins([1.0, 1.2, -0.1]) == [1, *[0] * 8, 2]


def test_the_plot_of_the_scores_says_its_numbers(page):
    soup = page(many())
    lines = body(table(soup, "Students by score"))
    assert sum(int(count) for _, count in lines) == 60
    drawn = [text.text for text in soup.select("svg .count")]
    assert drawn == [count for _, count in lines if count != "0"]
    assert f"{lines[0][1]};" in soup.svg.desc.text
    assert soup.svg.title.text == "Score distribution"


def test_the_height_of_a_bar_is_its_number():
    drawing = BeautifulSoup(histogram([0.05, 0.55, 0.55, 0.95], 0.5), "html.parser")
    one, two, last = (float(bar["height"]) for bar in drawing.select(".bar"))
    assert two == pytest.approx(2 * one) == pytest.approx(2 * last)
    assert "mean 50%" in drawing.text


def item(number, difficulty, discrimination, flags=()):
    return number, Item(f"q{number}", 1, 40, difficulty, discrimination, flags)


def test_every_question_is_drawn_in_its_place_with_its_number():
    drawing = BeautifulSoup(
        scatter([item(1, 0.5, 0.4), item(2, 0.1, -0.6, ("hard",)), item(3, 1.0, None)]), "html.parser"
    )
    assert [text.text for text in drawing.select(".key")] == ["1", "2"]
    circle, square = drawing.select("circle.question")[0], drawing.select("rect.question.look")[0]
    assert float(circle["cx"]) == pytest.approx((LEFT + RIGHT) / 2)
    assert float(square["x"]) + RADIUS == pytest.approx(LEFT + 0.1 * (RIGHT - LEFT), abs=0.1)
    assert "2, q2: difficulty 0.10, discrimination -0.60" in drawing.desc.text
    band = drawing.select_one(".band")
    assert float(band["x"]) == pytest.approx(LEFT + 0.3 * (RIGHT - LEFT), abs=0.1)
    assert float(band["width"]) == pytest.approx(0.5 * (RIGHT - LEFT), abs=0.1)


@settings(max_examples=50, derandomize=True, database=None)
@given(st.lists(st.tuples(st.floats(LEFT, RIGHT), st.floats(40, 200)), max_size=20))
def test_no_question_hides_another(places):
    for one, other in combinations(apart(places), 2):
        assert np.hypot(*np.subtract(one, other)) >= 2 * RADIUS - 1e-9


def test_a_question_with_room_stays_where_it_is():
    assert apart([(100.0, 100.0), (200.0, 100.0)]) == [(100.0, 100.0), (200.0, 100.0)]


def test_the_questions_are_in_a_table_too(page):
    lines = body(table(page(many()), "Each question"))
    assert [line[:4] for line in lines] == [
        ["1", "a-check", "4", "60"],
        ["2", "b-check", "2", "60"],
        ["3", "essay", "1", "51"],
    ]
    assert lines[0][4:6] == ["", "0.50"]
    assert all(re.fullmatch(r"−?\d\.\d\d", line[6]) for line in lines)


def test_mistakes_come_with_students_and_section(page):
    soup = page(many(), book="https://example.org/book/")
    first, second = soup.select(".bars > li")
    assert first.strong.text == "the wrong axis"
    assert first.select_one(".track span").text == "40 of 60 (67%)"
    assert first.select_one(".bar")["width"] == "66.7%"
    assert first.a["href"] == "https://example.org/book/book/one.html#softmax"
    assert "“Softmax” in the chapter “One”" in first.text
    assert second.strong.text == "raised an exception"
    assert "Reteach" not in second.text


def test_without_the_address_of_the_book_the_section_is_named_and_no_link(page):
    (first, _) = page(many()).select(".bars > li")
    assert "Reteach “Softmax”" in first.text
    assert not first.select("a")


def test_less_common_mistakes_are_a_click_away(page):
    rows = [row("ada", 1, 1, findings=tuple(Finding("q", f"m{i}", f"title {i}") for i in range(12)))]
    assert len(page(rows).select("section > .bars > li")) == 10
    assert "Less common: 2" in [summary.text for summary in page(rows).select("section > details > summary")]


def test_verdicts_are_counted_and_explained(page):
    rows = [row("a", 1, 1), row("b", 1, 1), row("c", 0, 0, "missing")]
    assert body(table(page(rows), "How the submissions ran")) == [
        ["graded", "2", Verdict.GRADED.text],
        ["missing", "1", Verdict.MISSING.text],
    ]


def test_flags_are_listed_with_their_reasons(page):
    (line,) = body(table(page([row("ada", 1, 1, flags=("one", "two")), row("bob", 1, 1)]), "Flagged submissions"))
    assert line == ["ada", "one two"]


def test_pairs_stand_side_by_side(page):
    soup = page(many(), SimilarityReport(59, (("s07", "no executed notebook"),), (PAIR,)))
    pair = soup.select_one(".pair")
    said = "ada and s05: 91% alike, 217 words in common, 180 of them written by hardly anybody else"
    assert pair.summary.text == said
    assert [pre.text for pre in pair.select(".passage pre")] == ["def f(x):\n    return x < 1", "g = 2"]
    assert [caption.text for caption in pair.select("figcaption")] == ["ada, softmax", "s05, dot"]
    assert "Submissions compared: 59. Pairs that stand out: 1." in soup.text
    assert "s07: no executed notebook" in soup.text


def test_a_name_leads_to_the_feedback_page(page, tmp_path):
    soup = page([row("ada", 1, 1, feedback=(tmp_path / "feedback" / "a da" / "x#y.html",)), row("bob", 1, 1)])
    (link,) = table(soup, "Everybody").select("a")
    assert (link.text, link["href"]) == ("ada", "../feedback/a%20da/x%23y.html")


@pytest.mark.parametrize(
    "rows", [[row("a", 0, 0, "missing")], [row("a", 4, 2)], [Row(Outcome("a", "infrastructure"), {}, 0, ())]]
)
def test_a_class_of_one_has_a_page(page, rows):
    assert headline(page(rows))["Students"].startswith("1")


def evil_class():
    bad = Finding(EVIL, EVIL, EVIL, EVIL, EVIL)
    outcome = Outcome(EVIL, Verdict.TAMPERED, EVIL, (bad, Finding(EVIL, None, EVIL)), EVIL, (EVIL,))
    rows = [
        Row(outcome, {EVIL: (float(i), 2.0), "b": (1.0 - i, 2.0), "c": (float(i), 1.0)}, 1, (Path("/x") / EVIL,))
        for i in (0, 1)
    ]
    pair = Pair(EVIL, EVIL, 0.9, 1, 1, (Passage(1, EVIL, EVIL, EVIL, EVIL),))
    return rows, SimilarityReport(1, ((EVIL, EVIL),), (pair,))


def test_the_page_names_the_course(page):
    assert page(many()).select("header p") == []
    assert [line.text for line in page(many(), title="Attention <2030>").select("header p")] == ["Attention <2030>"]


def test_whatever_a_student_is_called_or_wrote_is_text(page):
    soup = page(*evil_class(), book="https://example.org")
    assert not soup.find_all(["script", "img", "iframe", "object", "embed", "form", "base", "link"])
    assert not [
        name for tag in soup.find_all(True) for name in tag.attrs if name.startswith("on") or name in ("src", "srcset")
    ]
    assert "\u202e" not in str(soup)
    assert "\x1b" not in str(soup)
    assert all(re.match(r"https://example\.org/|\.\./", link["href"]) for link in soup.select("a"))
    assert str(soup).count("alert(") > 15, "the text is gone, instead of being escaped"


NAMES = [
    "{{ 7 * 7 }}{% raw %}",
    "{{ ''.__class__.__mro__ }}",
    "{# a comment #}%}",
    "</title></style><script>alert(1)</script>",
    "' onmouseover='alert(1)' x='",
    "<!--",
    "&lt;b&gt;",
    "%s {0} {name!r} ${x}",
    "אדה",
    "x" * 299,
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_shown_letter_by_letter_wherever_it_occurs(page, tmp_path, name):
    rows = [row(name, 4, 2, flags=(name,), findings=(Finding(name, name, name),), feedback=(tmp_path / "f" / name,))]
    soup = page(
        rows, SimilarityReport(2, ((name, name),), (Pair(name, name, 1, 1, 1, (Passage(1, name, name, name, name),)),))
    )
    assert {one.text for one in soup.select("bdi")} == {name}
    assert body(table(soup, "Everybody"))[0][0] == body(table(soup, "Flagged submissions"))[0][1] == name
    assert soup.select_one(".bars strong").text == soup.pre.text == name
    assert {link["href"] for link in soup.select("a")} == {f"../f/{quote(name)}"}
    assert not soup.find_all(["script", "b"])


@pytest.mark.parametrize("name", [*NAMES, EVIL])
def test_the_name_of_a_question_is_text_in_a_drawing(name):
    drawing = BeautifulSoup(scatter([(1, Item(name, 1, 40, 0.5, 0.4))]), "html.parser")
    said = f"1, {printable(name)}: difficulty 0.50, discrimination 0.40"
    assert drawing.desc.text == f"Each question by its number. {said}."
    assert drawing.g.title.text == said
    assert not drawing.find_all(["script", "img", "b"])


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_an_assignment_is_text(tmp_path, name):
    soup = BeautifulSoup(page_of([row("ada", 1, 1)], name, tmp_path, NONE), "html.parser")
    assert soup.title.text == soup.h1.text == f"Grades: {name}"


def test_what_a_template_is_not_given_is_an_error():
    with pytest.raises(UndefinedError, match="assignment"):
        render("page.html.j2", feedback={})


def test_the_page_asks_nobody_for_anything(page):
    soup = page(many(), book="https://example.org")
    policy = soup.select_one('meta[http-equiv="Content-Security-Policy"]')["content"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert not re.findall(r"@import|url\(", str(soup))
    assert not soup.find_all(["script", "link", "img", "iframe"])


def test_headings_are_in_order_and_tables_say_what_they_are(page):
    soup = page(many(), SimilarityReport(60, (("x", "y"),), (PAIR,)))
    assert [tag.name for tag in soup.find_all(re.compile("^h[1-6]$"))] == ["h1", *["h2"] * 7]
    for one in soup.select("table"):
        assert one.caption.text
        assert all(head["scope"] == "col" for head in one.select("thead th"))
        assert all(line.th["scope"] == "row" for line in one.select("tbody tr"))
        assert one.parent["aria-label"]
        assert one.parent["tabindex"] == "0"
    assert all(svg.title and svg.desc for svg in soup.select("svg[role=img]"))
    assert all(svg.get("role") == "img" or svg.get("aria-hidden") == "true" for svg in soup.select("svg"))


def roots(style: str) -> list[dict[str, str]]:
    """Return the declarations of each rule for :root, including those within @media."""
    rules = tinycss2.parse_stylesheet(style, skip_comments=True, skip_whitespace=True)
    inner = [part for rule in rules if rule.type == "at-rule" for part in tinycss2.parse_rule_list(rule.content)]
    found = [rule for rule in [*rules, *inner] if rule.type == "qualified-rule"]
    found = [rule.content for rule in found if tinycss2.serialize(rule.prelude).strip() == ":root"]
    lists = [tinycss2.parse_blocks_contents(content, skip_whitespace=True) for content in found]
    return [{part.name: tinycss2.serialize(part.value).strip() for part in parts} for parts in lists]


def luminance(colour):
    colour = "".join(c * 2 for c in colour) if len(colour) == 3 else colour
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return np.dot([0.2126, 0.7152, 0.0722], linear)


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_black_on_white_has_the_contrast_of_21():
    assert contrast("000", "ffffff") == pytest.approx(21)


@pytest.mark.parametrize("scheme", [0, 1, 2], ids=["light", "dark", "print"])
def test_text_stands_out(scheme):
    colours = {
        name.removeprefix("--"): value.removeprefix("#") for name, value in roots(CLASS_REPORT_CSS)[scheme].items()
    }
    for words in ("text", "quiet", "link", "look"):
        for ground in ("page", "card", "band"):
            assert contrast(colours[words], colours[ground]) >= 4.5, (words, ground)
    for shape in ("bar", "look"):
        assert contrast(colours[shape], colours["page"]) >= 3, shape


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser_it_fits_a_phone_and_nothing_goes_wrong(page, new_context, tmp_path, scheme):
    page(evil_class()[0] + many(), SimilarityReport(60, (("x" * 200, "y"),), (PAIR, evil_class()[1].pairs[0])))
    wrong = []
    with new_context(viewport={"width": 360, "height": 800}, color_scheme=scheme) as context:
        tab = context.new_page()
        tab.on("console", lambda message: wrong.append(message.text))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on(
            "request", lambda request: wrong.append(request.url) if not request.url.endswith("/grades.html") else None
        )
        tab.goto((tmp_path / "reports" / "grades.html").as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 29)")
        assert not wrong


# ---- what the page is made from


def test_an_outcome_with_flags_and_sections_reads_back_as_it_was_saved():
    outcome = Outcome("ada", "graded", "", (AXIS, LOOP), "d", ("one", "two"))
    assert Outcome.from_json(outcome.to_json()) == outcome
    data = json.loads(outcome.to_json())
    del data["flags"], data["findings"][1]["section"], data["findings"][1]["link"]
    assert Outcome.from_json(json.dumps(data).encode()) == Outcome("ada", "graded", "", (AXIS, LOOP), "d")


def test_flags_and_sections_are_printable_and_short():
    outcome = Outcome("ada", "graded", flags=("\x1b[2J" + "x" * 1000,))
    assert outcome.flags[0].startswith("\N{REPLACEMENT CHARACTER}[2J")
    assert len(outcome.flags[0]) == 300
    assert Finding("q", None, "t", "\x07", "\x07").section == "\N{REPLACEMENT CHARACTER}"


REPORT = {"exercise": "softmax", "backend": "numpy", "passed": False, "title": "the axis", "mistake": None}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"section": "“A”", "link": "a.html#b"}, ("“A”", "a.html#b")),
        ({}, ("", "")),
        ({"section": None, "link": None}, ("", "")),
    ],
)
def test_what_to_reread_comes_with_the_report(more, expected):
    (finding,) = findings(shown(REPORT | more))
    assert (finding.section, finding.link) == expected


@pytest.mark.parametrize("more", [{"section": 3}, {"link": ["a"]}])
def test_a_report_that_is_none_is_no_finding(more):
    assert not list(findings(shown(REPORT | more)))


def shown(report):

    meta = {"nbgrader": {"grade": True, "solution": False, "grade_id": "c", "points": 1, "locked": True}}
    cell = new_code_cell("", metadata=meta, outputs=[new_output("display_data", data={MIME_TYPE: report})])
    return new_notebook(cells=[cell])

"""What a student handed in becomes a notebook fit to be graded, or is refused: repairs, attacks, and all at random."""

import contextlib
import json
import os
import pickle
import random
import socket
from copy import deepcopy
from hashlib import sha256

import hypothesis.strategies as st
import nbformat
import pytest
from hypothesis import given, settings
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from tiny import REPOSITORY

from grading.repair import files, parse
from grading.repair.decode import merge_sides
from grading.repair.messages import RefusedError
from grading.repair.notebook import digest, repair_notebook
from grading.reread_links import relink_notebook

NAME = "tiny.ipynb"
EXERCISES = sorted(REPOSITORY.glob("exercises/*/*.ipynb"))


def marked(make, name, source, **what):
    """A cell that nbgrader knows."""
    nbgrader = {"grade": False, "locked": False, "solution": False, "task": False, "schema_version": 3} | what
    return make(source, id=name, metadata={"nbgrader": nbgrader | {"grade_id": name}})


def to_write(name):
    """A question to be answered in words."""
    answer = marked(new_markdown_cell, name, "YOUR ANSWER HERE", grade=True, solution=True, points=3)
    return [new_markdown_cell(f"Say it in **{name}**:", id=f"{name}-task"), answer]


def notebook_template():
    """An assignment that asks for three functions, each worth what its check returns, and for an answer in words."""
    made = [new_markdown_cell("# Exercises", id="title")]
    for name in ("one", "two", "three"):
        stub = f"def {name}():\n    raise NotImplementedError"
        made.append(marked(new_code_cell, f"answer-{name}", stub, solution=True))
        made.append(marked(new_code_cell, f"check-{name}", f"{name}()", grade=True, locked=True, points=2))
    made += [*to_write("words"), new_markdown_cell("The end.", id="end")]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return new_notebook(cells=made, metadata={"kernelspec": kernel})


TEMPLATE = notebook_template()
ANSWERS = {f"answer-{name}": f"def {name}():\n    return 2.0" for name in ("one", "two", "three")}
ANSWERS["words"] = "Since it is so."


def answered():
    """A submission in which everything is right, as Jupyter saves it."""
    notebook = deepcopy(TEMPLATE)
    notebook.metadata.language_info = {"name": "python", "version": "3.13.1"}
    for cell in notebook.cells:
        cell.source = ANSWERS.get(cell.id, cell.source)
        if cell.cell_type == "code":
            cell.execution_count = 3
            cell.outputs = [new_output("stream", text="x")]
    return notebook


def where(notebook, name):
    return next(i for i, cell in enumerate(notebook.cells) if cell.id == name)


def cell_of(notebook, name):
    return notebook.cells[where(notebook, name)]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "student" / "tiny").mkdir(parents=True)
    return tmp_path / "student" / "tiny"


@pytest.fixture
def hand_in(folder):
    def hand_in(what, template=TEMPLATE):
        data = what if isinstance(what, bytes) else (what if isinstance(what, str) else nbformat.writes(what)).encode()
        (folder / NAME).write_bytes(data)
        admitted = repair_notebook(folder, NAME, template)
        assert admitted.digest == digest(folder, NAME) == sha256(data).hexdigest()
        assert_sound(admitted, template)
        return admitted

    return hand_in


@pytest.fixture
def refuse(folder):
    def refuse(data=None):
        if data is not None:
            (folder / NAME).write_bytes(data)
        with pytest.raises(RefusedError) as caught:
            repair_notebook(folder, NAME, TEMPLATE)
        assert caught.value.digest == digest(folder, NAME)
        assert caught.value.reason.isprintable()
        return caught.value

    return refuse


def assert_sound(admitted, template=TEMPLATE):
    """Whatever came, the assignment stands in the result as it was given."""
    notebook = admitted.notebook
    before = deepcopy(notebook)
    nbformat.validate(notebook)
    assert notebook == before, "nbformat had to repair it"
    json.dumps(notebook, ensure_ascii=False).encode()
    assert {key: notebook[key] for key in ("nbformat", "nbformat_minor", "metadata")} == {
        key: template[key] for key in ("nbformat", "nbformat_minor", "metadata")
    }
    given_ids = [cell.id for cell in template.cells]
    ours = [cell for cell in notebook.cells if cell.id in given_ids]
    assert [cell.id for cell in ours] == given_ids
    for cell, asked in zip(ours, template.cells, strict=True):
        assert (cell.cell_type, cell.metadata) == (asked.cell_type, asked.metadata)
        assert cell.source == asked.source or asked.metadata.nbgrader.solution
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert cell.id in given_ids or not cell.metadata
        for media in cell.get("attachments", {}).values():
            assert media.keys() <= {"image/png", "image/jpeg"}
    for repair in admitted.repairs:
        assert repair.text.isprintable()
        assert len(repair.text) < 600


def kinds(admitted):
    return {repair.kind for repair in admitted.repairs}


def sources(admitted):
    return {cell.id: cell.source for cell in admitted.notebook.cells}


def own(admitted):
    return [cell.source for cell in admitted.notebook.cells if cell.id.startswith("own-")]


def points(admitted):
    """What each check is worth when the cells run one after the other, as a notebook does."""
    names, earned = {}, []
    for cell in admitted.notebook.cells:
        if cell.id.startswith("check-"):
            try:
                earned.append(eval(cell.source, names))
            except (NameError, NotImplementedError):
                earned.append(0)
        elif cell.cell_type == "code":
            exec(cell.source, names)
    return earned


# What is in order stays as it is


@pytest.mark.parametrize("file", EXERCISES, ids=lambda file: file.parent.name)
def test_an_assignment_as_it_was_released_takes_no_repair(tmp_path, file):
    template = nbformat.read(file, 4)
    folder = tmp_path / "student" / "assignment"
    folder.mkdir(parents=True)
    (folder / file.name).write_bytes(file.read_bytes())
    admitted = repair_notebook(folder, file.name, template)
    assert admitted.repairs == ()
    assert admitted.notebook == template


@pytest.mark.parametrize("book", ["", "https://example.org/course"])
@pytest.mark.parametrize("file", EXERCISES, ids=lambda file: file.parent.name)
def test_hints_with_other_links_or_none_as_in_an_earlier_release_need_no_repair(tmp_path, file, book):
    template, handed_out = nbformat.read(file, 4), relink_notebook(file.read_bytes(), book)
    assert handed_out != file.read_bytes()
    folder = tmp_path / "student" / "assignment"
    folder.mkdir(parents=True)
    (folder / file.name).write_bytes(handed_out)
    admitted = repair_notebook(folder, file.name, template)
    assert admitted.repairs == ()
    assert admitted.notebook == template
    notebook = nbformat.reads(handed_out.decode(), 4)
    hint = next(cell for cell in notebook.cells if "Reread" in cell.source)
    hint.source += "\n\nMy answer."
    (folder / file.name).write_text(nbformat.writes(notebook))
    assert own(repair_notebook(folder, file.name, template)) == [hint.source]


def test_a_long_text_of_brackets_and_quotation_marks_is_read_quickly(hand_in):
    notebook = answered()
    place = "[“a”]: x/book/a.html#b\n"
    for name, source in (("title", place + "[“" * 100_000), ("end", "[“a”]: " + "/book/" * 30_000)):
        cell_of(notebook, name).source = source
    assert len(own(hand_in(notebook))) == 2


def test_answers_are_taken_and_own_cells_stay_where_they_stood(hand_in):
    notebook = answered()
    notebook.cells.insert(where(notebook, "answer-two"), new_code_cell("mine = 1", metadata={"tags": ["x"]}))
    notebook.cells.append(new_markdown_cell("Bye."))
    notebook.cells.insert(0, new_code_cell("first = 1"))
    admitted = hand_in(notebook)
    assert admitted.repairs == ()
    assert sources(admitted).items() >= ANSWERS.items()
    names = [cell.id for cell in admitted.notebook.cells]
    assert [(names[0], names[names.index("answer-two") - 1], names[-1])] == [("own-1", "own-2", "own-3")]
    assert own(admitted) == ["first = 1", "mine = 1", "Bye."]


def test_a_fresh_id_is_nobody_elses(hand_in):
    template = deepcopy(TEMPLATE)
    template.cells[0].id = "own-1"
    notebook = answered()
    notebook.cells[0].id = "own-1"
    notebook.cells.append(new_code_cell("1", id="title"))
    assert hand_in(notebook, template).notebook.cells[-1].id == "own-2"


def test_outputs_of_the_template_are_cleared_too(hand_in):
    template = deepcopy(TEMPLATE)
    template.cells[1].outputs, template.cells[1].execution_count = [new_output("stream", text="x")], 3
    assert hand_in(answered(), template).repairs == ()


def test_the_template_is_left_alone(hand_in):
    before = deepcopy(TEMPLATE)
    hand_in(answered()).notebook.cells[1].metadata.nbgrader.points = 99
    assert before == TEMPLATE


# The file


@pytest.mark.parametrize(
    "name",
    [
        *("tiny (1).ipynb", "tiny(12).ipynb", "tiny-Copy1.ipynb", "tiny - Copy (2).ipynb", "tiny copy.ipynb"),
        *("Copy of tiny.ipynb", "TINY.IPYNB", "tiny.ipynb.json", "tiny.ipynb.txt", "tiny-2.ipynb", "tiny 2.ipynb"),
    ],
)
def test_a_renamed_file_is_found(folder, name):
    (folder / name).write_text(nbformat.writes(answered()))
    (folder / "notes.txt").write_text("x")
    admitted = repair_notebook(folder, NAME, TEMPLATE)
    assert points(admitted) == [2, 2, 2]
    (repair,) = admitted.repairs
    assert repair.kind == "renamed-file"
    assert name in repair.text


OTHER_NAMES = ["My Homework (final).ipynb", "tiny_v2.ipynb", "my-tiny.ipynb", "tiny-checkpoint.ipynb", "HW.IPYNB.txt"]


def without_marks(notebook):
    """The notebook as an editor saves it that keeps neither ids nor metadata."""
    for cell in notebook.cells:
        cell.metadata = {}
        del cell["id"]
    notebook.nbformat_minor = 4
    return notebook


@pytest.mark.parametrize("edit", [lambda notebook: notebook, without_marks], ids=["whole", "without-marks"])
@pytest.mark.parametrize("name", OTHER_NAMES)
def test_the_one_notebook_with_the_assignments_cells_is_taken_whatever_its_name(folder, name, edit):
    (folder / name).write_text(nbformat.writes(edit(answered())))
    (folder / "another.ipynb").write_text(nbformat.writes(new_notebook(cells=[new_code_cell("1 + 1")])))
    admitted = repair_notebook(folder, NAME, TEMPLATE)
    assert points(admitted) == [2, 2, 2]
    assert [name in repair.text for repair in admitted.repairs if repair.kind == "renamed-file"] == [True]
    assert "several-files" not in kinds(admitted)


@pytest.mark.parametrize("name", ["tiny.py", "tiny.ipynb.zip"])
def test_a_file_that_is_no_notebook_is_not_taken_but_named(folder, refuse, name):
    (folder / name).write_text(nbformat.writes(answered()))
    assert (refuse().verdict, name in refuse().reason) == ("missing", True)


@pytest.mark.parametrize("file", EXERCISES, ids=lambda file: file.parent.name)
def test_the_notebook_of_another_assignment_is_not_taken_for_this_one(tmp_path, file):
    folder = tmp_path / "student" / "assignment"
    folder.mkdir(parents=True)
    for other in EXERCISES:
        if other != file:
            (folder / f"My {other.name}").write_bytes(other.read_bytes())
    with pytest.raises(RefusedError) as refused:
        repair_notebook(folder, file.name, nbformat.read(file, 4))
    assert refused.value.verdict == "missing"
    assert refused.value.digest == digest(folder, file.name)


def with_answers(*names):
    """A notebook in which only these answers are written."""
    notebook = deepcopy(TEMPLATE)
    for cell in notebook.cells:
        cell.source = ANSWERS[cell.id] if cell.id in names else cell.source
    return notebook


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        ({NAME: ["answer-one"], "tiny_v2.ipynb": ["answer-one", "answer-two"]}, NAME),
        ({NAME: [], "tiny_v2.ipynb": ["answer-one"]}, "tiny_v2.ipynb"),
        ({NAME: [], "tiny (1).ipynb": ["words"], "a.ipynb": ["answer-one", "answer-two"]}, "a.ipynb"),
        ({NAME: [], "tiny_v2.ipynb": []}, NAME),
        ({"tiny (1).ipynb": ["answer-one"], "tiny_final.ipynb": ["answer-one", "words"]}, "tiny_final.ipynb"),
        ({"sub/tiny.ipynb": ["answer-one"], "tiny_v2.ipynb": ["answer-one", "words"]}, "sub/tiny.ipynb"),
    ],
)
def test_of_several_files_one_is_taken_by_rule_and_the_others_are_told(folder, files, taken):
    for name, answers in files.items():
        write_aged(folder / name, with_answers(*answers), 0)
    admitted = repair_notebook(folder, NAME, TEMPLATE)
    written = {name for name in ANSWERS if sources(admitted)[name] == ANSWERS[name]}
    assert written == set(files[taken])
    (told,) = [repair.text for repair in admitted.repairs if repair.kind == "several-files"]
    assert told.startswith(f"There are several files, and {taken} was chosen: ")
    assert all(name in told.partition("Not graded: ")[2] for name in files.keys() - {taken})
    assert admitted.digest == digest(folder, NAME)
    write_aged(folder / next(iter(files.keys() - {taken})), with_answers("answer-three"), 0)
    assert admitted.digest != digest(folder, NAME), "a file that was passed over has changed, and might count now"


def test_an_unreadable_file_of_the_right_name_is_taken_only_where_nothing_else_is_answered(folder, refuse):
    (folder / NAME).write_text("{")
    write_aged(folder / "tiny (1).ipynb", with_answers(), 0)
    assert refuse().verdict == "unreadable"
    write_aged(folder / "tiny_v2.ipynb", answered(), 5)
    assert points(repair_notebook(folder, NAME, TEMPLATE)) == [2, 2, 2]


def test_only_so_many_notebooks_are_read(folder, monkeypatch):
    read, opened = files._read, []
    monkeypatch.setattr(files, "_read", lambda home, entry: opened.append(entry.name) or read(home, entry))
    for i in range(50):
        write_aged(folder / f"n{i}.ipynb", with_answers(), i)
    write_aged(folder / NAME, answered(), 99)
    assert points(repair_notebook(folder, NAME, TEMPLATE)) == [2, 2, 2]
    assert opened == [NAME, *(f"n{i}.ipynb" for i in range(files.MAX_FILES - 1))]


def write_aged(path, notebook, age):
    path.parent.mkdir(exist_ok=True)
    path.write_text(nbformat.writes(notebook))
    os.utime(path, (1e9 - age, 1e9 - age))


def test_of_several_files_the_newest_is_taken_and_the_name_asked_for_before_all(folder):
    old, new, exact, inside = (answered() for _ in range(4))
    for notebook, text in ((old, "old"), (new, "new"), (inside, "inside"), (exact, "exact")):
        cell_of(notebook, "words").source = text
    expected = []
    for name, notebook, age in (
        ("tiny (1).ipynb", old, 3),
        ("tiny (2).ipynb", new, 2),
        ("sub/tiny.ipynb", inside, 9),
        (NAME, exact, 9),
    ):
        write_aged(folder / name, notebook, age)
        admitted = repair_notebook(folder, NAME, TEMPLATE)
        expected.append(sources(admitted)["words"])
        several = [repair.text for repair in admitted.repairs if repair.kind == "several-files"]
        assert all(f"{name} was chosen" in text for text in several)
        assert len(several) == (len(expected) > 1)
    assert expected == ["old", "new", "inside", "exact"]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({NAME: (["answer-one"], 3), "a.ipynb": (["answer-one"], 0)}, "it has the expected name"),
        ({"a.ipynb": (["answer-one", "words"], 3), "b.ipynb": (["words"], 0)}, "it has the most answers"),
        (
            {"tiny (1).ipynb": (["answer-one"], 3), "a.ipynb": (["answer-one"], 0), "b.ipynb": ([], 1)},
            "no other file has more answers, and its name fits best",
        ),
        (
            {"tiny (1).ipynb": (["words"], 2), "tiny (2).ipynb": (["words"], 3), "a.ipynb": (["words"], 0)},
            "it is the newest of the files with the most answers and a fitting name",
        ),
        (
            {"a.ipynb": (["words"], 2), "b.ipynb": (["words"], 3), "c.ipynb": ([], 0)},
            "it is the newest of the files with the most answers",
        ),
    ],
)
def test_the_reason_for_choosing_a_file_is_the_one_that_decided(folder, files, why):
    for name, (answers, age) in files.items():
        write_aged(folder / name, with_answers(*answers), age)
    (told,) = [repair for repair in repair_notebook(folder, NAME, TEMPLATE).repairs if repair.kind == "several-files"]
    assert told.text.startswith(f"There are several files, and {next(iter(files))} was chosen: {why}. Not graded: ")


def test_an_extracted_archive_is_looked_into_one_level_deep(folder, refuse):
    write_aged(folder / "homework" / NAME, answered(), 0)
    assert kinds(repair_notebook(folder, NAME, TEMPLATE)) == {"sub-folder"}
    (folder / "homework" / "deeper").mkdir()
    (folder / "homework" / NAME).rename(folder / "homework" / "deeper" / NAME)
    assert "homework (a folder)" in refuse().reason


@pytest.mark.parametrize("name", [".ipynb_checkpoints", "__MACOSX"])
def test_what_systems_leave_behind_is_no_submission(folder, refuse, name):
    write_aged(folder / name / NAME, answered(), 0)
    assert refuse().verdict == "missing"


def test_nothing_at_all_is_missing(folder, refuse):
    assert refuse().reason == f"There is no file named {NAME}, and the folder is empty. Ask for it."
    folder.rmdir()
    assert refuse().verdict == "missing"


def test_names_are_fit_to_print_and_few(folder, refuse):
    for i in range(30):
        (folder / f"bidi\u202e\n{i:02}\x1b[31m").touch()
    (folder / os.fsdecode(b"latin\xff")).touch()
    assert "and 26 more" in refuse().reason
    assert refuse().reason.count("bidi") == 5
    before = digest(folder, NAME)
    (folder / "another").touch()
    assert digest(folder, NAME) != before


def make_socket(path):
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)  # the address of a socket has at most 108 bytes


SPECIAL = {
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "loop": lambda path: path.symlink_to(path),
    "link": lambda path: path.symlink_to(write_elsewhere(path)),
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "socket": make_socket,
}


def write_elsewhere(path):
    other = path.parents[2] / "other.ipynb"
    other.write_text(nbformat.writes(answered()))
    return other


@pytest.mark.parametrize("name", [NAME, "tiny (1).ipynb"])
@pytest.mark.parametrize("special", SPECIAL)
def test_only_plain_files_count(folder, refuse, special, name):
    SPECIAL[special](folder / name)
    assert refuse().verdict == "missing"
    assert f"{name} (" in refuse().reason
    write_aged(folder / "tiny (2).ipynb", answered(), 0)
    assert points(repair_notebook(folder, NAME, TEMPLATE)) == [2, 2, 2]


@pytest.mark.parametrize("level", ["assignment", "sub-folder"])
def test_no_folder_may_be_a_link(tmp_path, folder, refuse, level):
    write_aged(tmp_path / "other" / NAME, answered(), 0)
    if level == "assignment":
        folder.rmdir()
        folder.symlink_to(tmp_path / "other")
    else:
        (folder / "sub").symlink_to(tmp_path / "other")
    assert refuse().verdict == "missing"


@pytest.mark.parametrize("special", SPECIAL)
def test_a_file_that_is_exchanged_after_it_was_seen_is_not_read(folder, refuse, monkeypatch, special):
    choose = files._choose

    def exchange(*arguments):
        chosen = choose(*arguments)
        (folder / NAME).unlink()
        SPECIAL[special](folder / NAME)
        return chosen

    (folder / NAME).write_text(nbformat.writes(answered()))
    monkeypatch.setattr(files, "_choose", exchange)
    with pytest.raises(RefusedError) as caught:
        repair_notebook(folder, NAME, TEMPLATE)
    assert caught.value.verdict == "unreadable"
    assert "plain file" in caught.value.reason


def test_a_file_without_end_is_not_read(folder, refuse):
    with (folder / NAME).open("wb") as file:
        file.truncate(10**12)
    assert "1000000000000 bytes, more than 20000000" in refuse().reason


def test_a_file_that_grows_is_read_up_to_the_limit(folder, refuse, monkeypatch):
    seen = os.fstat
    monkeypatch.setattr(files, "MAX_NOTEBOOK_BYTES", 1000)
    monkeypatch.setattr(files.os, "fstat", lambda file: os.stat_result([*seen(file)[:6], 0, *seen(file)[7:]]))
    assert "1001 bytes, more than 1000" in refuse(b" " * 5000).reason


# Bytes and text


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_any_unicode_is_read(hand_in, encoding):
    notebook = answered()
    cell_of(notebook, "words").source = "Größe, 大きさ"
    admitted = hand_in(json.dumps(notebook, ensure_ascii=False).encode(encoding))
    assert kinds(admitted) == {"encoding"}
    assert sources(admitted)["words"] == "Größe, 大きさ"


def test_bytes_that_are_no_text_are_replaced(hand_in):
    notebook = answered()
    cell_of(notebook, "words").source = "Größe"
    admitted = hand_in(json.dumps(notebook, ensure_ascii=False).encode("latin-1"))
    assert kinds(admitted) == {"replaced-characters"}
    assert sources(admitted)["words"] == "Gr\ufffd\ufffde"


def test_line_ends_of_windows_are_those_of_unix_again(hand_in):
    text = nbformat.writes(answered())
    assert kinds(hand_in(text.replace("\n", "\r\n"))) == {"line-ends"}
    admitted = hand_in(text.replace("\\n", "\\r\\n"))
    assert kinds(admitted) == {"line-ends"}
    assert sources(admitted).items() >= ANSWERS.items()


CONFLICT = "{}\n<<<<<<< HEAD\n{}||||||| base\nno\n=======\n{}>>>>>>> theirs\n{}"


def test_of_a_conflict_the_first_side_is_taken(hand_in):
    text = nbformat.writes(answered())
    line = next(line for line in text.splitlines(True) if "Since it is so" in line)
    before, after = text.split(line)
    admitted = hand_in(CONFLICT.format(before, line, line.replace("so", "not"), after))
    assert kinds(admitted) == {"merge-conflict"}
    assert sources(admitted)["words"] == "Since it is so."


@pytest.mark.parametrize("ours", ["", '{"cells": []}\n', "[\n", '{"cells": [{"id": "title"}]}\n'])
def test_of_a_conflict_the_side_with_more_of_the_assignment_is_taken(hand_in, ours):
    admitted = hand_in(CONFLICT.format("", ours, nbformat.writes(answered()) + "\n", ""))
    assert kinds(admitted) == {"merge-conflict"}
    assert points(admitted) == [2, 2, 2]


def test_a_conflict_without_a_notebook_is_refused(refuse):
    assert "conflicts" in refuse(CONFLICT.format("", "{\n", "[\n", "").encode()).reason
    assert "begins with <<<<<<<" in refuse(b"<<<<<<< HEAD\n{}").reason


def test_of_a_conflict_within_a_cell_the_first_side_is_kept(hand_in):
    notebook = answered()
    cell = cell_of(notebook, "answer-one")
    cell.source = f"<<<<<<< local\n{cell.source}\n=======\ndef one():\n    return 9\n>>>>>>> remote"
    cell_of(notebook, "words").source = "Title\n=======\n<<<<<<< is no conflict"
    admitted = hand_in(notebook)
    assert kinds(admitted) == {"merge-conflict"}
    assert points(admitted) == [2, 2, 2]
    assert sources(admitted)["words"] == cell_of(notebook, "words").source


def test_what_stands_after_the_end_is_left_out(hand_in):
    admitted = hand_in(nbformat.writes(answered()) + "\n}]\n<html>")
    assert kinds(admitted) == {"trailing-text"}
    assert points(admitted) == [2, 2, 2]


# The format


def test_the_third_format_is_read(hand_in):
    old = nbformat.convert(answered(), 3)
    old["worksheets"].append({"cells": [{"cell_type": "heading", "level": 2, "source": ["Mine"]}]})
    admitted = hand_in(json.dumps(old))
    assert kinds(admitted) == {"old-format", "kernelspec"} - ({"kernelspec"} if "kernelspec" in old.metadata else set())
    assert points(admitted) == [2, 2, 2]
    assert sources(admitted)["words"] == ANSWERS["words"]
    assert own(admitted)[-1] == "## Mine"


def without_ids(notebook, minor=4):
    notebook.nbformat_minor = minor
    for cell in notebook.cells:
        del cell["id"]


@pytest.mark.parametrize("minor", range(5))
def test_a_format_without_ids_is_read(hand_in, minor):
    without_ids(notebook := answered(), minor)
    admitted = hand_in(json.dumps(notebook))
    assert [repair.kind for repair in admitted.repairs] == ["old-format"]
    assert f"format 4.{minor}, " in admitted.repairs[0].text
    assert points(admitted) == [2, 2, 2]


@pytest.mark.parametrize("wrong", [None, "", "title", "ä", "x" * 65, 3, [], {}])
def test_ids_are_repaired(hand_in, wrong):
    notebook = answered()
    cell_of(notebook, "answer-one")["id"] = wrong
    admitted = hand_in(json.dumps(notebook))
    assert kinds(admitted) == {"cell-ids"}
    assert points(admitted) == [2, 2, 2]


def test_one_cell_and_several_are_told_of_in_the_right_number(hand_in):
    notebook = answered()
    cell_of(notebook, "answer-one")["id"] = ""
    one = [repair.text for repair in hand_in(json.dumps(notebook) + "x").repairs]
    assert one == [
        "What followed the end of the notebook (1 character) is left out.",
        "1 cell had no valid id of its own.",
    ]
    cell_of(notebook, "words")["id"] = "ä"
    two = [repair.text for repair in hand_in(json.dumps(notebook) + "x!").repairs]
    assert two == [
        "What followed the end of the notebook (2 characters) is left out.",
        "2 cells had no valid id of their own.",
    ]


@pytest.mark.parametrize("kernel", [None, 3, {"name": "julia\x1b", "display_name": 3}, {"name": ["python3"]}])
def test_the_kernel_is_the_assignments(hand_in, kernel):
    notebook = answered()
    notebook.metadata.kernelspec = kernel
    assert kinds(hand_in(json.dumps(notebook))) == {"kernelspec"}


def test_a_notebook_from_the_browser_needs_no_repair(hand_in):
    notebook = answered()
    notebook.metadata.kernelspec = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
    admitted = hand_in(json.dumps(notebook))
    assert kinds(admitted) == set()
    assert points(admitted) == [2, 2, 2]


@pytest.mark.parametrize("source", [3, None, {"a": 1}, ["x", 3, ["y"]]])
def test_a_source_that_is_no_text_costs_itself(hand_in, source):
    notebook = answered()
    cell_of(notebook, "answer-one").source = source
    admitted = hand_in(json.dumps(notebook))
    assert kinds(admitted) == {"broken-cell"}
    assert sources(admitted)["answer-one"] == ("x" if isinstance(source, list) else "")
    notebook.cells[0] = "no cell"
    assert kinds(hand_in(json.dumps(notebook))) == {"broken-cell", "missing-cell"}


def test_outputs_and_metadata_of_any_kind_are_dropped(hand_in):
    notebook = answered()
    notebook.metadata.x = float("nan")
    notebook.metadata.y = [float("inf"), 10**4000]
    cell = cell_of(notebook, "answer-one")
    cell.outputs = [{"output_type": "nonsense", "data": ["x"] * 1000, "text": "y" * 10_000_000}, 3, None]
    cell.attachments = 3
    admitted = hand_in(json.dumps(notebook).replace('"x"]', '"x", ' + "1" * 10_000 + "]"))
    assert admitted.repairs == ()
    assert points(admitted) == [2, 2, 2]


def test_surrogates_can_be_written_later(hand_in):
    notebook = answered()
    cell_of(notebook, "words").source = "a\ud800b"
    notebook.cells.append(new_code_cell("'\udfff'", id="mine"))
    cell_of(notebook, "title").metadata = {"nbgrader": {"grade_id": "\ud800"}}
    notebook.cells[-1]["id"] = "\udc00"
    admitted = hand_in(json.dumps(notebook))
    assert kinds(admitted) == {"replaced-characters", "cell-ids"}
    assert sources(admitted)["words"] == "a\ufffdb"
    assert own(admitted) == ["'\ufffd'"]


# The cells


def duplicate(notebook, name, source=None):
    at = where(notebook, name)
    copied = deepcopy(notebook.cells[at])
    copied.id, copied.source = f"{name}-copy", copied.source if source is None else source
    notebook.cells.insert(at + 1, copied)


def delete(notebook, *gone):
    notebook.cells = [cell for cell in notebook.cells if cell.id not in gone]


def split(notebook):
    duplicate(notebook, "answer-two", "def two(): return half * 2")
    cell_of(notebook, "answer-two").source = "half = 1.0"


def split_at_the_end(notebook):
    duplicate(notebook, "answer-two", " \n")
    duplicate(notebook, "words", "")


def retype(notebook, place="check-two", source="def two(): return 2.0"):
    delete(notebook, "answer-two")
    notebook.cells.insert(where(notebook, place), new_code_cell(source))


def rename(notebook):
    cell_of(notebook, "answer-two").metadata.nbgrader.grade_id = "mine"


def shuffle(notebook):
    random.Random(0).shuffle(notebook.cells)


def change_types(notebook):
    for name, kind in {"answer-one": "markdown", "answer-two": "raw", "check-two": "raw", "words": "code"}.items():
        cell_of(notebook, name).cell_type = kind


def strip(notebook):
    for cell in notebook.cells:
        cell.metadata = {}


def strip_all(notebook):
    strip(notebook)
    without_ids(notebook)


def edit(notebook):
    cell_of(notebook, "check-one").source = "one() + 5"


def delete_old(notebook):
    delete(notebook, "answer-two")
    without_ids(notebook)


ACCIDENTS = {  # what happened, what is reported, and what each check is worth then
    "copied_answer": (lambda notebook: duplicate(notebook, "answer-two"), {"duplicated-cell"}, [2, 2, 2]),
    "copied_wrong": (
        lambda notebook: duplicate(notebook, "answer-two", "def two(): return 0.5"),
        {"duplicated-cell"},
        [2, 0.5, 2],
    ),
    "copied_check": (lambda notebook: duplicate(notebook, "check-two"), {"duplicated-cell"}, [2, 2, 2]),
    "split": (split, {"duplicated-cell"}, [2, 2, 2]),
    "split_at_the_end": (split_at_the_end, {"duplicated-cell"}, [2, 2, 2]),
    "renamed": (rename, {"renamed-cell"}, [2, 2, 2]),
    "retyped": (retype, {"found-by-place"}, [2, 2, 2]),
    "retyped_elsewhere": (lambda notebook: retype(notebook, "title"), {"missing-answer"}, [2, 2, 2]),
    "retyped_too_late": (lambda notebook: retype(notebook, "words"), {"missing-answer"}, [2, 0, 2]),
    "retyped_differently": (
        lambda notebook: retype(notebook, "check-two", "exec('def two(): return 2.0')"),
        {"missing-answer"},
        [2, 2, 2],
    ),
    "deleted_answer": (lambda notebook: delete(notebook, "answer-two"), {"missing-answer"}, [2, 0, 2]),
    "deleted_both": (
        lambda notebook: delete(notebook, "answer-two", "check-two"),
        {"missing-answer", "missing-cell"},
        [2, 0, 2],
    ),
    "deleted_four": (
        lambda notebook: delete(notebook, "answer-two", "check-two", "answer-one", "check-one"),
        {"missing-answer", "missing-cell"},
        [0, 0, 2],
    ),
    "deleted_text": (lambda notebook: delete(notebook, "title", "end"), {"missing-cell"}, [2, 2, 2]),
    "deleted_in_an_old_format": (delete_old, {"old-format", "missing-answer"}, [2, 0, 2]),
    "reordered": (shuffle, {"moved-cell"}, [2, 2, 2]),
    "other_types": (change_types, {"cell-type"}, [2, 2, 2]),
    "stripped": (strip, {"no-metadata"}, [2, 2, 2]),
    "stripped_of_ids_too": (strip_all, {"no-metadata", "old-format", "found-by-place"}, [2, 2, 2]),
    "edited_check": (edit, {"edited-cell"}, [2, 2, 2]),
    "of_another_assignment": (lambda notebook: notebook.cells.clear(), {"another-notebook"}, [0, 0, 0]),
}


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_an_accident_costs_at_most_the_question_itself(hand_in, accident):
    happen, reported, worth = ACCIDENTS[accident]
    happen(notebook := answered())
    admitted = hand_in(json.dumps(notebook))
    assert kinds(admitted) == reported
    assert points(admitted) == worth
    assert sources(admitted)["words"] == (ANSWERS["words"] if accident != "of_another_assignment" else "")


def test_an_answer_that_is_gone_is_empty(hand_in):
    delete(notebook := answered(), "answer-two", "words")
    admitted = hand_in(notebook)
    assert (sources(admitted)["answer-two"], sources(admitted)["words"]) == ("", "")
    (repair,) = admitted.repairs
    assert "answer-two, words" in repair.text


def test_of_several_copies_the_others_stay_and_run_where_they_stand(hand_in):
    split(notebook := answered())
    admitted = hand_in(notebook)
    names = [cell.id for cell in admitted.notebook.cells]
    assert names[names.index("check-one") :][:4] == ["check-one", "own-1", "answer-two", "check-two"]
    assert own(admitted) == ["half = 1.0"]


def test_a_written_answer_that_was_typed_anew_is_read(hand_in):
    delete(notebook := answered(), "words")
    notebook.cells.insert(where(notebook, "end"), new_markdown_cell("Since I say so."))
    notebook.cells.insert(where(notebook, "end"), new_markdown_cell("And a note."))
    admitted = hand_in(notebook)
    assert sources(admitted)["words"] == "Since I say so."
    assert own(admitted) == ["And a note."]


def test_a_copy_of_the_task_is_no_answer(hand_in):
    delete(notebook := answered(), "words")
    duplicate(notebook, "words-task")
    assert sources(hand_in(notebook))["words"] == ""


def test_code_is_no_written_answer(hand_in):
    delete(notebook := answered(), "words")
    notebook.cells.insert(where(notebook, "end"), new_code_cell("mine = 1"))
    admitted = hand_in(notebook)
    assert (sources(admitted)["words"], own(admitted)) == ("", ["mine = 1"])


def test_without_marks_nothing_is_an_answer_that_may_be_the_task(hand_in):
    strip_all(notebook := answered())
    notebook.cells[7].source = "I write into the task"
    admitted = hand_in(json.dumps(notebook))
    assert sources(admitted)["words"] == ""
    assert own(admitted) == ["I write into the task", ANSWERS["words"]]


def test_without_marks_the_placeholder_of_one_answer_is_not_taken_for_another(hand_in):
    template = deepcopy(TEMPLATE)
    template.cells[-1:-1] = to_write("more")
    notebook = deepcopy(template)
    cell_of(notebook, "words").source = ANSWERS["words"]
    strip_all(notebook)
    admitted = hand_in(json.dumps(notebook), template)
    assert (sources(admitted)["words"], sources(admitted)["more"]) == (ANSWERS["words"], "YOUR ANSWER HERE")


def test_what_is_written_into_the_assignments_text_is_kept_beside_it(hand_in):
    notebook = answered()
    cell_of(notebook, "words-task").source += "\nSince it is late."
    admitted = hand_in(notebook)
    assert kinds(admitted) == {"edited-text"}
    assert own(admitted) == ["Say it in **words**:\nSince it is late."]


def test_the_last_copy_of_a_whole_notebook_counts(hand_in):
    notebook = answered()
    notebook.cells += deepcopy(notebook.cells)
    notebook.cells[where(notebook, "words")].source = "The first."
    admitted = hand_in(json.dumps(notebook))
    assert kinds(admitted) == {"duplicated-cell", "cell-ids"}
    assert sources(admitted)["words"] == ANSWERS["words"]
    assert len(own(admitted)) == len(TEMPLATE.cells)


# What is refused


def deep(depth):
    return b'{"cells": [], "x": ' + b"[" * depth + b"]" * depth + b"}"


def wide(n):
    return json.dumps({"cells": [{"cell_type": "code", "source": "x" * 1000}] * n}).encode()


BROKEN = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\t\r\n", "contains only whitespace"),
    "a page": (b"<!DOCTYPE html>", "begins with <!DOCTYPE html>"),
    "an archive": (b"PK\x03\x04", "is not a notebook"),
    "a list": (b"[]", "is not a notebook"),
    "no cells": (b'{"nbformat": 4}', "no list of cells"),
    "cells of no kind": (b'{"cells": {"a": 1}}', "no list of cells"),
    "no worksheets": (b'{"worksheets": []}', "no list of cells"),
    "odd worksheets": (b'{"worksheets": [{"cells": []}, 3]}', "no list of cells"),
    "cut off": (nbformat.writes(answered()).encode()[:-40], "was it cut off?"),
    "a comma too many": (b'{"cells": [],}', "was it cut off?"),
    "deep": (deep(100_000), "nested more deeply"),
    "large": (b" " * (files.MAX_NOTEBOOK_BYTES + 1), "20000001 bytes, more than 20000000"),
    "many": (json.dumps({"cells": [{}] * 501}).encode(), "501 cells, more than 500"),
    "wordy": (wide(500) + b" ", None),
    "too wordy": (wide(500).replace(b"x", b"xx", 1), "500001 characters of text in its cells, more than 500000"),
    "bracketed": (b'{"cells": [], "x": [' + b"[]," * 1_000_000 + b"1]}", "commas and brackets, more than 2000000"),
}


@pytest.mark.parametrize("came", [came for came, (_, said) in BROKEN.items() if said])
def test_what_cannot_be_graded_is_refused_with_a_reason(refuse, came):
    data, said = BROKEN[came]
    refused = refuse(data)
    assert refused.verdict == "unreadable"
    assert said in refused.reason
    assert "Ask for " in refused.reason


def test_what_is_just_within_the_limits_is_admitted(hand_in):
    hand_in(BROKEN["wordy"][0])
    hand_in(deep(300))
    hand_in(nbformat.writes(answered()).ljust(files.MAX_NOTEBOOK_BYTES))
    notebook = answered()
    notebook.cells += [new_code_cell("") for _ in range(parse.MOST_CELLS - len(notebook.cells))]
    assert points(hand_in(notebook)) == [2, 2, 2]


def test_the_same_key_a_hundred_thousand_times_is_one_key(hand_in):
    text = nbformat.writes(answered())
    assert points(hand_in("{" + '"cells": [],' * 100_000 + text[1:])) == [2, 2, 2]


def test_a_refusal_survives_the_way_between_processes(refuse):
    refused = refuse(b"")
    again = pickle.loads(pickle.dumps(refused))
    assert (again.verdict, again.reason, again.digest) == (refused.verdict, refused.reason, refused.digest)


# All at random

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 600) | st.floats() | st.text(max_size=5) | st.just("answer-one"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
KINDS = st.sampled_from(["code", "markdown", "raw", "heading", "x"])
STEPS = st.one_of(
    st.tuples(st.just("drop"), st.integers(0, 30)),
    st.tuples(st.just("copy"), st.integers(0, 30), st.integers(0, 30)),
    st.tuples(st.just("shuffle"), st.randoms(use_true_random=False)),
    st.tuples(st.just("retype"), st.integers(0, 30), KINDS),
    st.tuples(st.just("delete"), st.integers(0, 300)),
    st.tuples(st.just("replace"), st.integers(0, 300), JSON),
)


def slots(value):
    """Every place in JSON, as a container and a key of it."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from slots(value[key])


def mutate(notebook, step, *how):
    found, some = list(slots(notebook)), notebook.get("cells")
    if step in ("delete", "replace") and found:
        container, key = found[how[0] * 7 % len(found)]
        if step == "delete":
            del container[key]
        else:
            container[key] = deepcopy(how[1])
    elif isinstance(some, list) and some:
        at = how[0] % len(some) if step != "shuffle" else 0
        if step == "drop":
            del some[at]
        elif step == "copy":
            some.insert(how[1] % len(some), deepcopy(some[at]))
        elif step == "shuffle":
            how[0].shuffle(some)
        elif isinstance(some[at], dict):
            some[at]["cell_type"] = how[1]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("student") / "tiny"
    place.mkdir()
    return place


def admitted_or_refused(place, data):
    (place / NAME).write_bytes(data)
    try:
        admitted = repair_notebook(place, NAME, TEMPLATE)
    except RefusedError as caught:
        refused = caught
    else:
        return assert_sound(admitted)
    assert refused.verdict == "unreadable"
    assert refused.reason.isprintable()


random_examples = settings(max_examples=150, derandomize=True, database=None)


@pytest.mark.slow
@random_examples
@given(st.lists(STEPS, max_size=8))
def test_any_change_is_repaired_or_refused(place, steps):
    notebook = json.loads(nbformat.writes(answered()))
    for step in steps:
        mutate(notebook, *step)
    admitted_or_refused(place, json.dumps(notebook).encode())


@pytest.mark.slow
@random_examples
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 20), st.binary(max_size=6)), max_size=4))
def test_any_bytes_are_repaired_or_refused(place, cuts):
    data = nbformat.writes(answered()).encode()
    for at, length, put in cuts:
        at %= len(data)
        data = data[:at] + put + data[at + length :]
    admitted_or_refused(place, data)


NAMES = [cell.id for cell in TEMPLATE.cells]
PLACES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=5)


@pytest.mark.slow
@random_examples
@given(st.permutations(range(len(NAMES))), st.sets(st.sampled_from(NAMES)), PLACES)
def test_answers_survive_any_order_copies_and_losses(place, order, gone, places):
    notebook = answered()
    notebook.cells = [notebook.cells[i] for i in order if NAMES[i] not in gone]
    for n, (which, to) in enumerate(places if notebook.cells else ()):
        copied = deepcopy(notebook.cells[which % len(notebook.cells)])
        copied.id = f"copy-{n}"
        notebook.cells.insert(to % len(notebook.cells), copied)
    (place / NAME).write_text(nbformat.writes(notebook))
    admitted = repair_notebook(place, NAME, TEMPLATE)
    assert_sound(admitted)
    assert {name: sources(admitted)[name] for name in ANSWERS} == {
        name: "" if name in gone else source for name, source in ANSWERS.items()
    }
    assert ("missing-answer" in kinds(admitted)) == bool(gone & ANSWERS.keys() and notebook.cells)


LINE = st.sampled_from(["a", "=======x", "", " =======", "<<<<<< a", "é\u2028=======", ">>>>>> b"])
LINES = st.lists(LINE, max_size=4)
PIECES = st.lists(st.tuples(LINES, LINES, LINES), min_size=1, max_size=3)


@random_examples
@given(PIECES)
def test_both_sides_of_any_conflict_are_found(pieces):
    text = "".join(
        "".join(f"{line}\n" for line in (*both, "<<<<<<< a", *ours, "=======", *theirs, ">>>>>>> b"))
        for both, ours, theirs in pieces
    )
    expected = tuple("".join(f"{line}\n" for piece in pieces for line in (*piece[0], *piece[side])) for side in (1, 2))
    assert merge_sides(text) == expected

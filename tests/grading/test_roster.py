"""A roster goes into the gradebook as a whole or not at all, whatever system exported it and whatever is in it."""

import tomllib

import pytest
from tiny import REPOSITORY

from grading.__main__ import main
from grading.class_settings import RosterSettings, read_roster, write_roster
from grading.course import Course, GradingError
from grading.csv_file import read_csv
from grading.gradebook.students import StudentEntry, students
from grading.own_names import own_names
from grading.roster.changes import compare, shown
from grading.roster.columns import Columns, columns_of
from grading.roster.importing import import_roster
from grading.roster.read_students import read_students

CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Notes,02-self-attention (42)
,,,,,,Manual Posting
    Points Possible,,,,,,7.00
"Lovelace, Ada",1001,S1,ada,Monday,"likes
proofs",9.00
"Bartók, Béla",1002,S2,bela@uni.edu,Monday,,8.00
"Student, Test",1099,,test,Monday,,
"""
SPLIT = """\
LastName,FirstName,ID,SIS Login ID,Section
    Points Possible,,,,
Lovelace,Ada,1001,ada,Monday
Bartók,Béla,1002,bela@uni.edu,Monday
"""
WORKSHEET = """\
Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed
Participant 77000,Aiko Lovelace,aiko@uni.edu,Submitted,,"100,00",Yes
Participant 77001,Miles O'Brien_Smith,miles@uni.edu,Submitted,,"100,00",Yes
"""
PARTICIPANTS = "First name;Last name;Email address;Groups\nAiko;Lovelace;aiko@uni.edu;\n"
BLACKBOARD = (
    "Last Name\tFirst Name\tUsername\tStudent ID\tLast Access\tAvailability\n"
    "Lovelace\tAda\tada\t7\t2030-01-01\tYes\nLovelace_previewuser\tAda\tx_previewuser\t\t\tYes\n"
)
NBGRADER = "id,first_name,last_name,email\nada,Ada,Lovelace,ada@uni.edu\n"
ADA, BELA = StudentEntry("1001", "Ada", "Lovelace", "", "1001"), StudentEntry("1002", "Béla", "Bartók", "", "1002")


def entries(tmp_path, text, encoding="utf-8", told=()):
    (file := tmp_path / "roster.csv").write_bytes(text.encode(encoding))
    lines = read_csv(file, 100_000, "a class list")
    found, problems = read_students(lines, columns_of(lines[0].cells, dict(told), {})[0])
    assert not problems
    return [listed.entry for listed in found]


def problems(tmp_path, *rows, header="id,first_name,last_name,email"):
    (file := tmp_path / "roster.csv").write_text("\n".join([header, *rows]), encoding="utf-8", newline="")
    lines = read_csv(file, 100_000, "a class list")
    return read_students(lines, columns_of(lines[0].cells, {}, {})[0])[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CANVAS, [ADA, BELA]),
        (SPLIT, [ADA, BELA]),
        (WORKSHEET, [StudentEntry("Aiko Lovelace_77000", "", "Aiko Lovelace", "aiko@uni.edu"),
                     StudentEntry("Miles OBrien Smith_77001", "", "Miles O'Brien_Smith", "miles@uni.edu")]),
        (PARTICIPANTS, [StudentEntry("aiko@uni.edu", "Aiko", "Lovelace", "aiko@uni.edu")]),
        (BLACKBOARD, [StudentEntry("ada", "Ada", "Lovelace")]),
        (NBGRADER, [StudentEntry("ada", "Ada", "Lovelace", "ada@uni.edu")]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_the_systems_export_is_recognised(tmp_path, text, expected, encoding):
    assert entries(tmp_path, text, encoding) == expected


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_delimiter_and_the_ends_of_lines_do_not_matter(tmp_path, delimiter, end):
    text = "id,first_name,last_name\nada,Ada,Lovelace\n".replace(",", delimiter).replace("\n", end)
    assert entries(tmp_path, text) == [StudentEntry("ada", "Ada", "Lovelace")]


def test_other_titles_are_mapped_by_the_command(tmp_path):
    told = {"id": "Kürzel", "last_name": "Nachname"}
    assert entries(tmp_path, "Nachname;KÜRZEL \nLovelace;ada\n", told=told) == [StudentEntry("ada", "", "Lovelace")]


@pytest.mark.parametrize(
    ("header", "told", "says"),
    [
        (["a", "b"], {}, "columns 'a', 'b'. Expected those of Canvas, Moodle.*--id COLUMN"),
        (["a", "b"], {"id": "c", "name": "b"}, "'c' occurs not in the file"),
        (["a", "A", "b"], {"id": "a", "name": "b"}, "'a' occurs twice or more"),
        (["a", "b"], {"name": "b"}, "no column with the student's id"),
        (["a", "b"], {"id": "a"}, "no column with a name"),
    ],
)
def test_columns_that_are_not_there_are_answered_by_those_that_are(header, told, says):
    with pytest.raises(GradingError, match=says):
        columns_of(header, told, {})


def test_the_command_counts_before_what_was_kept_and_that_before_what_is_recognised():
    header, kept = ["id", "first_name", "last_name", "nick"], {"id": "nick", "name": "last_name"}
    assert columns_of(header, {"id": "id", "name": "nick"}, kept) == (Columns(id="id", name="nick"), "the command")
    assert columns_of(header, {}, kept) == (Columns(id="nick", name="last_name"), "course.toml")
    assert columns_of(header[:3], {}, kept)[1] == "nbgrader"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (",Ada,Lovelace,", "the id '' is empty"),
        ("../ada,Ada,Lovelace,", "contains a slash"),
        ("a\\b,Ada,Lovelace,", "contains a slash"),
        (".ada,Ada,Lovelace,", "begins with a dot"),
        ("a*,Ada,Lovelace,", "nbgrader takes for a pattern"),
        ('1.23E+08,Ada,Lovelace,', "a spreadsheet has shortened"),
        ("ada,,,", "it has no name"),
        ("ada,Ada,Lovelace,ada at uni", "the e-mail address is 'ada at uni'; expected one like name@example.org"),
        ("ada,A\x1b[2Jda,Lovelace,", "contains the control character U+001B"),
        ('ada,"A\nda",Lovelace,', "contains the control character U+000A"),
        (f"ada,{'A' * 129},Lovelace,", "the first name has 129 characters; expected at most 128"),
        ("ada,Ada,Lovelace,,King", "it has 5 cells; expected 4"),
        ("Zoe,Ada,Lovelace,", "the id 'Zoe' is also that of 'Zoë Doe' on line 2 ('zoe')"),
        ("zoe,Ada,Lovelace,", "the id 'zoe' is also that of 'Zoë Doe' on line 2"),
    ],
)  # fmt: skip
def test_a_bad_row_is_refused_by_its_line_with_what_came_and_what_was_expected(tmp_path, row, says):
    (problem,) = problems(tmp_path, "zoe,Zoë,Doe,", "", row)
    assert problem.line == 4
    assert says in problem.text


def test_a_student_in_two_sections_counts_once(tmp_path):
    assert len(entries(tmp_path, f"{NBGRADER}ada,Ada,Lovelace,ada@uni.edu\n")) == 1


def test_direction_marks_go_and_joiners_and_markup_stay(tmp_path):
    text = (
        "id,first_name,last_name\nada,\u202e<b>A\u200fda</b>\u202c,می\u200cخواهم\u00a0 x\nb,=cmd|' /C calc'!A0,../Doe\n"
    )
    ada, b = entries(tmp_path, text)
    assert ada == StudentEntry("ada", "<b>Ada</b>", "می\u200cخواهم x")
    assert (b.first_name, b.last_name) == ("=cmd|' /C calc'!A0", "../Doe")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("Bartók".encode("latin-1"), "cannot be read as a class list.*save it as CSV UTF-8"),
        ("a,b".encode("utf-16-le"), "null characters"),
        (b'id,name\n"ada,Ada', "is not a CSV file"),
        (b"x" * 101, "more than 100 bytes"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused(tmp_path, content, says):
    (file := tmp_path / "roster.csv").write_bytes(content)
    with pytest.raises(GradingError, match=says):
        read_csv(file, 100, "a class list")


def listed(tmp_path, *rows):
    (file := tmp_path / "new.csv").write_text("\n".join(["id,first_name,last_name,email,lms_user_id", *rows]))
    lines = read_csv(file, 100_000, "a class list")
    return read_students(lines, columns_of(lines[0].cells, {}, {})[0])[0]


KNOWN = {
    "ada": StudentEntry("ada", "Ada", "Lovelace", "ada@uni.edu", "1"),
    "bela": StudentEntry("bela", "Béla", "Bartók", "bela@uni.edu", "2"),
    "zoe": StudentEntry("zoe"),  # handed in before the roster came
}


def test_who_joins_who_is_renamed_and_who_is_missing(tmp_path):
    file = listed(tmp_path, "ada,Ada,King,,", "cem,Ada,King,,", "zoe,Zoë,Doe,,")
    found = compare(file, KNOWN, {"ada", "bela"}, {"zoe"})
    assert found.new == (StudentEntry("cem", "Ada", "King"),)
    assert found.changed == (
        (KNOWN["ada"], StudentEntry("ada", "Ada", "King", "ada@uni.edu", "1")),
        (KNOWN["zoe"], StudentEntry("zoe", "Zoë", "Doe")),
    )
    assert (found.missing, found.back) == ((KNOWN["bela"],), (StudentEntry("zoe", "Zoë", "Doe"),))
    assert shown(found, complete=False).splitlines() == [
        "New (1):",
        "  cem: Ada King",
        "Changed (2):",
        "  ada: Ada Lovelace → Ada King",
        "  zoe: nothing → Zoë Doe",
        "Back in the class (1):",
        "  zoe: Zoë Doe",
        "On the class list, but not in the file (1):",
        "  bela: Béla Bartók, bela@uni.edu",
        "  If the file lists the whole class, pass --complete: these students have then left.",
        "The same as before: 0 students.",
        "2 students are named Ada King: ada, cem. The id is always next to the name.",
    ]


@pytest.mark.parametrize("row", ["ada.king,Ada,King,,1", "ada.king,Ada,King,ADA@uni.edu,"])
def test_a_new_login_is_the_same_student_if_the_number_or_the_address_is(tmp_path, row):
    found = compare(listed(tmp_path, row), KNOWN, KNOWN.keys(), ())
    assert not found.new
    assert [(new.id, new.name) for _, new in found.changed] == [("ada", "Ada King")]
    assert "ada.king is ada in the gradebook, and keeps that id." in found.notes


def test_names_that_only_split_otherwise_are_the_same(tmp_path):
    found = compare(listed(tmp_path, "ada,,Ada Lovelace,,"), KNOWN, KNOWN.keys(), ())
    assert (found.changed, found.same) == ((), 1)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (["ADA,Ada,Lovelace,,"], "the id is 'ADA'; expected 'ada', as in the gradebook"),
        (["x,Ada,King,,1", "y,Ada,King,ada@uni.edu,"], "an earlier line also has the number or address of 'ada'"),
    ],
)
def test_lines_that_contradict_the_gradebook_are_refused(tmp_path, rows, says):
    (problem,) = compare(listed(tmp_path, *rows), KNOWN, KNOWN.keys(), ()).problems
    assert (problem.line, problem.text.startswith(says)) == (len(rows) + 1, True)


def test_the_settings_keep_what_else_is_in_the_file(tmp_path):
    course = Course(tmp_path, tmp_path / "class")
    before = (
        '# mine\nname = "A"\n\n# old\n# comment\n[roster]\nid = "x"\nleft = [\n    "a",\n]\n\n# about b\n[b]\nc = 1\n'
    )
    course.files.write(course.folder / "course.toml", before.encode())
    for settings in (RosterSettings({"id": 'q"\\\n\x7f', "name": "é"}, frozenset({"b, c", "a"})),) * 2:
        write_roster(course, settings)
        assert read_roster(course) == settings
    text = (course.folder / "course.toml").read_text()
    assert text.startswith('# mine\nname = "A"\n\n# about b\n[b]\nc = 1\n\n# The columns')
    assert (text.count("[roster]"), "old" in text) == (1, False)
    assert tomllib.loads(text)["b"] == {"c": 1}


@pytest.mark.parametrize(
    "wrong", ["[roster]\nid = 3\n", "[roster]\nleft = 'a'\n", "[roster]\nidd = 'a'\n", "roster = ["]
)
def test_settings_that_cannot_be_meant_are_refused(tmp_path, wrong):
    course = Course(tmp_path, tmp_path / "class")
    course.files.write(course.folder / "course.toml", wrong.encode())
    with pytest.raises(GradingError, match=r"course\.toml"):
        read_roster(course)


@pytest.mark.slow
class TestImport:
    @pytest.fixture
    def course(self, tmp_path) -> Course:
        return Course(REPOSITORY, tmp_path / "class")

    def of(self, course):
        return students(course.config().CourseDirectory.db_url)

    def test_a_dry_run_shows_the_same_and_writes_nothing(self, course, tmp_path, capsys):
        (file := tmp_path / "canvas.csv").write_text(CANVAS, encoding="utf-8")
        command = ["roster", str(file), "--course", str(course.folder)]
        assert main([*command, "--dry-run"]) == 0
        dry = capsys.readouterr().out
        assert "New (2):\n  1001: Ada Lovelace\n  1002: Béla Bartók\n" in dry
        assert not course.folder.exists() or not list(course.folder.iterdir())
        assert main(command) == 0
        assert capsys.readouterr().out.partition("Written")[0] == dry.partition("This was")[0]
        assert self.of(course) == {"1001": ADA, "1002": BELA}
        assert own_names(course) == {"1001": {"1001", "s1", "ada"}, "1002": {"1002", "s2", "bela@uni.edu"}}

    def test_one_bad_line_and_nothing_is_imported(self, course, tmp_path, capsys):
        (file := tmp_path / "a.csv").write_text(f"{NBGRADER}..,Béla,Bartók,\n,,x,\n", encoding="utf-8")
        assert main(["roster", str(file), "--course", str(course.folder)]) == 1
        said = capsys.readouterr().err
        assert "nothing was imported" in said
        assert "line 3: the id '..'" in said
        assert "line 4: the id ''" in said
        assert not (course.folder / "gradebook.db").exists()

    def test_if_the_settings_cannot_be_written_the_gradebook_is_not_either(self, course, tmp_path, monkeypatch):
        (file := tmp_path / "a.csv").write_text(NBGRADER)
        monkeypatch.setattr("grading.roster.importing.write_roster", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            import_roster(course, file, {})
        assert self.of(course) == {}

    def test_the_mapping_is_kept_and_who_left_is_removed_or_keeps_the_marks(self, course, tmp_path):
        (file := tmp_path / "a.csv").write_text("Kürzel;Nachname\nada;Lovelace\nbela;Bartók\ncem;Doe\n")
        import_roster(course, file, {"id": "Kürzel", "name": "Nachname"})
        course.submitted("bela", "tiny").mkdir(parents=True)
        file.write_text("Kürzel;Nachname\nada;King\n")
        assert "On the class list, but not in the file (2)" in import_roster(course, file, {})
        assert self.of(course).keys() == {"ada", "bela", "cem"}
        assert "Left the class (2)" in import_roster(course, file, {}, complete=True)
        assert {student: entry.name for student, entry in self.of(course).items()} == {"ada": "King", "bela": "Bartók"}
        assert read_roster(course) == RosterSettings({"id": "Kürzel", "name": "Nachname"}, frozenset({"bela"}))
        file.write_text("Kürzel;Nachname\nada;King\nbela;Bartók\n")
        assert "Back in the class (1)" in import_roster(course, file, {}, complete=True)
        assert read_roster(course).left == frozenset()

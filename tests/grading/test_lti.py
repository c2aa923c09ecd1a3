"""Grades go through LTI 1.3 to a platform that runs here as a process of its own, and checks every key and token."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from grading.course import Course, GradingError
from grading.gradebook.students import StudentEntry
from grading.lti import passback
from grading.lti.passback import send_grades
from grading.outcome import Outcome
from grading.report import Row

pytest.importorskip("pylti1p3", reason="pylti1p3 is not installed: run make")
jwk = pytest.importorskip("jwcrypto.jwk")
pytest.importorskip("lti1p3platform", reason="lti1p3platform is not installed: run make test")

pytestmark = pytest.mark.slow


def row(student, score, verdict="graded", to_read=0, **entry):
    return Row(Outcome(student, verdict), {"a": (score, 7.0)}, to_read, (), entry=StudentEntry(student, **entry))


CLASS = [
    row("ada", 5.125, email="ada@example.org"),
    row("bela", 3, to_read=1),
    row("cem", 0, lms_user_id="1003"),
    row("dora", 4, email="twins@example.org"),
    row("emmy", 4, email="emmy@example.org"),
    row("fritz", 4, verdict="infrastructure", email="ada@example.org"),
]


def key(file: Path) -> dict:
    """Write a new private key, and return the public one."""
    made = jwk.JWK.generate(kty="RSA", size=2048)
    file.write_bytes(made.export_to_pem(private_key=True, password=None))
    return json.loads(jwk.JWK.from_pem(made.export_to_pem()).export_public())


@pytest.fixture
def platform(tmp_path, monkeypatch):
    """A platform that has registered the key in `tool.pem`, and its address; the class is graded."""
    monkeypatch.setattr(passback, "rows", lambda course, assignment: CLASS)
    key(tmp_path / "platform.pem")
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [key(tmp_path / "tool.pem")]}))
    command = [sys.executable, Path(__file__).with_name("lti_platform.py"), "platform.pem", "keys.json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        lines = {"token_url": "token", "line_items": "columns", "members": "members"}
        text = "".join(f'{name} = "{url}/{path}"\n' for name, path in lines.items())
        text += 'issuer = "https://lms.example.org"\nclient_id = "tool"\nkey = "tool.pem"\n'
        (tmp_path / "lti.toml").write_text(text)
        yield url
        process.terminate()


def received(url):
    with urlopen(f"{url}/received") as answer:
        return json.load(answer)


def test_each_grade_arrives_once_at_the_one_student_it_belongs_to(platform, tmp_path):
    said = send_grades(Course(tmp_path, tmp_path), "tiny", tmp_path / "lti.toml")
    assert said.splitlines() == [
        "  ada → 5.125",
        "  bela → 3",
        "  cem → 0",
        "3 grades sent to https://lms.example.org",
        "  dora: left out: no student there has this address, id or number, or several have it",
        "  emmy: left out: no student there has this address, id or number, or several have it",
        "  fritz: left out: the grader failed: run it again for this student",
    ]
    there = received(platform)
    assert [(column["tag"], column["scoreMaximum"]) for column in there["columns"]] == [("tiny", 7)]
    got = {student: [(s["scoreGiven"], s["scoreMaximum"], s["gradingProgress"]) for s in scores]
           for student, scores in there["scores"].items()}  # fmt: skip
    done, waiting = "FullyGraded", "PendingManual"
    assert got == {"u1": [(5.125, 7, done)], "u2": [(3, 7, waiting)], "1003": [(0, 7, done)]}


def test_sending_again_makes_no_second_column_and_another_maximum_is_said(platform, tmp_path, monkeypatch):
    send_grades(Course(tmp_path, tmp_path), "tiny", tmp_path / "lti.toml")
    more = Row(Outcome("ada", "graded"), {"a": (6.0, 9.0)}, 0, (), entry=CLASS[0].entry)
    monkeypatch.setattr(passback, "rows", lambda course, assignment: [more])
    said = send_grades(Course(tmp_path, tmp_path), "tiny", tmp_path / "lti.toml")
    assert said.startswith("The platform's column is worth 7, but the assignment is worth 9: change the column.\n")
    there = received(platform)
    assert len(there["columns"]) == 1
    assert [score["scoreGiven"] for score in there["scores"]["u1"]] == [5.125, 6]


def test_a_key_that_the_platform_does_not_know_sends_nothing(platform, tmp_path):
    key(tmp_path / "tool.pem")
    with pytest.raises(GradingError, match=r"lms\.example\.org did not accept the grades: .*Compare .*lti\.toml"):
        send_grades(Course(tmp_path, tmp_path), "tiny", tmp_path / "lti.toml")
    assert received(platform) == {"columns": [], "scores": {}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("issuer = ", "cannot be read"),
        ('issuer = "x"\nuser = "y"\n', "has issuer, user; expected a string for each of issuer, client_id, token_url"),
    ],
)
def test_settings_that_are_wrong_are_told(platform, tmp_path, text, said):
    (tmp_path / "lti.toml").write_text(text)
    with pytest.raises(GradingError, match=said):
        send_grades(Course(tmp_path, tmp_path), "tiny", tmp_path / "lti.toml")

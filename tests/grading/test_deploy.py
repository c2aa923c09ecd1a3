"""The recipes for servers in `deploy/`: their commands exist, and what the image copies is enough to grade."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from traitlets.config.loader import PyFileConfigLoader

from grading.__main__ import _parser
from grading.course import Course
from grading.report import rows
from grading.sample import write_class

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BIN = "/opt/attention/.venv/bin"  # where the recipes expect the programs
ASSIGNMENT = "02-self-attention"


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    if not (program := shutil.which("systemd-analyze")):
        pytest.skip("systemd-analyze is not installed")
    units = sorted(DEPLOY.glob("*.service")) + sorted(DEPLOY.glob("*.timer"))
    assert len(units) == 3
    for unit in units:
        text = unit.read_text(encoding="utf-8").replace(BIN, str(Path(sys.executable).parent))
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    files = [tmp_path / unit.name for unit in units]
    done = subprocess.run([program, "verify", *files], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("recipe", ["grade@.service", "crontab"])
def test_what_runs_each_night_is_a_command_that_exists(recipe):
    text = (DEPLOY / recipe).read_text(encoding="utf-8").replace("%i", ASSIGNMENT)
    (arguments,) = re.findall(r"\.venv/bin/python -m grading (.*?)(?: >> .*)?$", text, re.MULTILINE)
    asked = _parser().parse_args(shlex.split(arguments))
    assert (asked.command, asked.assignment) == ("run", ASSIGNMENT)


def test_the_line_for_cron_has_five_times_and_ends_with_the_exit_code_of_the_grader(tmp_path):
    (line,) = [line for line in (DEPLOY / "crontab").read_text("utf-8").splitlines() if not line.startswith("#")]
    *times, command = line.split(maxsplit=5)
    assert all(re.fullmatch(r"\*|\d+", time) for time in times)
    failing = command.replace("/opt/attention", ".").replace(".venv/bin/python", "false").replace("/srv/class/", "")
    done = subprocess.run(["sh", "-c", failing], cwd=tmp_path, check=False)
    assert done.returncode == 1


def test_only_the_graders_server_starts_in_the_course_and_reads_its_configuration():
    config = PyFileConfigLoader("jupyterhub_config.py", path=str(DEPLOY / "jupyterhub")).load_config()
    started = {}
    for name in ("grader", "ada"):
        server = SimpleNamespace(
            user=SimpleNamespace(name=name), environment=config.Spawner.environment, cmd="", notebook_dir=""
        )
        config.Spawner.pre_spawn_hook(server)
        found = server.environment["JUPYTER_CONFIG_PATH"].split(":")
        started[name] = server.cmd, server.notebook_dir, found, server.environment.get("ATTENTION_CLASS")
    assert started == {
        "grader": (
            [f"{BIN}/jupyterhub-singleuser"],
            "/opt/attention",
            ["/etc/attention", "/opt/attention"],
            "/srv/class",
        ),
        "ada": ("", "", ["/etc/attention"], None),
    }
    (role,) = config.JupyterHub.load_roles
    assert all(scope.endswith("!user=grader") for scope in role["scopes"]), "instructors cannot open a student's server"


def test_the_trial_of_the_hub_creates_no_accounts_unasked_and_renames_what_is_there(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import hub
    import hub_machine

    monkeypatch.setattr(sys, "argv", ["hub.py"])
    with pytest.raises(SystemExit):
        hub.main()
    assert "pass --create-accounts" in capsys.readouterr().err
    texts = "".join(file.read_text(encoding="utf-8") for file in (DEPLOY / "jupyterhub").glob("*.py"))
    paths = ("/srv/class", "/srv/exchange", "{COURSE}/.venv", "/opt/attention", "/etc/attention")
    assert [text for text in (*hub_machine.RENAMED, *paths) if text not in texts] == []


def test_what_the_image_copies_is_enough_to_grade(tmp_path):
    image, folder = tmp_path / "attention", tmp_path / "class"
    image.mkdir()
    for words in re.findall(r"^COPY (.+)$", (DEPLOY / "Containerfile").read_text("utf-8"), re.MULTILINE):
        *sources, _ = words.split()
        for name in sources:
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, image / name)
    write_class(course := Course.at(image, folder), ASSIGNMENT)
    command = [sys.executable, "-m", "grading", "run", ASSIGNMENT, "--students", "ada", "--course", folder]
    settings = os.environ | {"PYTHONPATH": str(image)}
    done = subprocess.run(command, cwd=image, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (ada,) = (row for row in rows(course, ASSIGNMENT) if row.outcome.student == "ada")
    assert (ada.outcome.verdict, ada.score) == ("graded", ada.points - sum(ada.scores[name][1] for name in ada.unread))

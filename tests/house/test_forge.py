"""Workflows, templates and metadata follow their schemas, and agree with the rest of the repository."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from wrong_names import wrong_files, wrong_names, wrong_programs, wrong_targets

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "vendor.dependabot": ".github/dependabot.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/*.yml",
    "vendor.citation-file-format": "CITATION.cff",
}
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def check(schema, *files):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_the_forge_reads_keeps_to_its_schema(schema):
    files = sorted(ROOT.glob(SCHEMAS[schema]))
    assert files
    done = check(schema, *files)
    assert done.returncode == 0, done.stdout


def test_a_workflow_with_a_misspelt_key_is_found(tmp_path):
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "run-on:"))
    assert check("vendor.github-workflows", wrong).returncode != 0


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_runs_is_there(workflow):
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert wrong_names("\n".join(step.get("run", "") for step in steps)) == []
    arguments = [str(value) for step in steps for value in step.get("with", {}).values()]
    assert not [name for text in arguments for name in wrong_files(text.replace("'", " "))]


def test_what_runs_in_a_devcontainer_or_before_a_commit_is_there():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    (hooks,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    commands = [container["postCreateCommand"], *(hook["entry"] for hook in hooks["hooks"])]
    assert len(commands) > 3
    assert [*wrong_targets("\n".join(commands)), *wrong_programs("\n".join(commands))] == []


def test_the_published_book_is_built_for_its_address():
    (line,) = re.findall(r"s\|\^(.*?)\|", (ROOT / ".github/workflows/publish.yml").read_text())
    assert len(re.findall("^" + line.replace('\\"', '"'), (ROOT / "_config.yml").read_text(), re.MULTILINE)) == 1


def test_only_one_issue_is_opened_for_the_same_fault(tmp_path):
    """The script opens an issue only if none is open; a stand-in for `gh` says how many are."""
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\ncase "$2" in list) cat "$0.open" ;; create) echo "$@" >>"$0.created" ;; esac\n')
    gh.chmod(0o755)
    surroundings = {"PATH": f"{tmp_path}:/usr/bin:/bin", "GITHUB_REPOSITORY": "some/course"}
    surroundings |= {"GITHUB_SERVER_URL": "https://forge.example", "GITHUB_RUN_ID": "17"}
    for already, opened in (("1", False), ("0", True)):
        (tmp_path / "gh.open").write_text(already)
        script = ["bash", ROOT / ".github" / "open-issue.sh", "It broke"]
        subprocess.run(script, env=surroundings, check=True, timeout=600)
        assert (tmp_path / "gh.created").exists() == opened
    assert "https://forge.example/some/course/actions/runs/17" in (tmp_path / "gh.created").read_text()

"""Workflows, templates and metadata follow their schemas, and agree with the rest of the repository."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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
    steps = [step for job in yaml.safe_load(workflow.read_text())["jobs"].values() for step in job["steps"]]
    commands = " ".join(step.get("run", "") for step in steps)
    targets = set(re.findall(r"\bmake (\w+)", commands))
    assert targets <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in re.findall(r"(?<![\w/])\.(?:ci|github)/[\w./-]+", commands):
        assert (ROOT / path).is_file(), path


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

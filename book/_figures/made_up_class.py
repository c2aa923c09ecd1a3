"""A terminal in which the pages for instructors run the commands that they show, on the made-up class."""

import os
import re
import shlex
import subprocess
from contextlib import ExitStack
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from _tools.forked_python import forked_python
from IPython.display import HTML, Markdown

import grading
from grading.course import Course

ASSIGNMENT, NOTEBOOK = "02-self-attention", "self-attention.ipynb"
ROOT = Path(grading.__file__).parents[1]
PYTHON = ".venv/bin/python"
# Importing these takes two seconds, so it is done once, and not again for each command.
IMPORTED = ("grading.preloaded", "grading.collect.collect", "grading.gradebook.assignment", "grading.run")
FRAME = "width: 100%; height: 34rem; border: 1px solid currentColor; border-radius: 0.3rem; background: Canvas"


class MadeUpClass:
    """An empty folder, in which the class will be in ``class/``, and a terminal there."""

    def __init__(self) -> None:
        os.environ.pop("ATTENTION_DB", None)  # keeps the made-up class out of the gradebook of a real one
        self._open = ExitStack()
        self.folder = Path(self._open.enter_context(TemporaryDirectory(prefix="class-")))
        self.course = Course(ROOT, self.folder / "class")
        self.sandboxed = True
        self._python = self._open.enter_context(forked_python(*IMPORTED))

    def show(self, commands: str, *, more: str = "", lines: int = 0, exit_code: int = 0) -> Markdown:
        """Run commands, and return them with what they print.

        Args:
            commands: one command a line: ``.venv/bin/python -m …``, or a system program.
            more: options that are not shown: the page says which, and why.
            lines: how many lines of what they print are shown; 0 means all.
            exit_code: the exit code of the last command.
        """
        said = self.run(commands, more=more, exit_code=exit_code).rstrip().splitlines()
        kept = [*said[:lines], "…"] if 0 < lines < len(said) else said
        return Markdown(f"```bash\n{commands.strip()}\n```\n\n```text\n{chr(10).join(kept)}\n```")

    def run(self, commands: str, *, more: str = "", exit_code: int = 0) -> str:
        """Run commands as in a terminal, and return what they print."""
        lines = commands.strip().replace("\\\n", " ").splitlines()
        done = [self._run([*shlex.split(line, comments=True), *more.split()]) for line in lines]
        codes = [one.returncode for one in done]
        assert codes == [0] * (len(codes) - 1) + [exit_code], "\n".join(one.stderr[-2000:] for one in done)
        return "".join(one.stdout for one in done).replace(f"{self.folder}/", "")

    def _run(self, words: list[str]) -> "subprocess.CompletedProcess[str]":
        # The pages are shown within this book, where their links would not work: they are made without its address.
        env = os.environ | {"ATTENTION_CLASS": str(self.course.folder), "ATTENTION_BOOK": "", "PYTHONPATH": str(ROOT)}
        command = [*self._python, *words[1:]] if words[0] == PYTHON else words
        done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        if "run" in words and "no sandbox" in done.stderr and self.sandboxed:
            self.sandboxed = False
            return self._run([*words, "--unsandboxed"])
        return done

    def feedback(self, student: str) -> str:
        """Return the feedback page of a student."""
        return (self.course.feedback(student, ASSIGNMENT) / NOTEBOOK).with_suffix(".html").read_text(encoding="utf-8")

    def framed(self, page: str, title: str) -> HTML:
        """Show a page within the page: nothing in it runs, its links lead nowhere, and it names no place here."""
        assert not re.search(r"<(script|link|base)\b", page)
        assert not any(path in page for path in (str(self.folder), str(ROOT), f"{Path.home()}/"))
        inert = escape(re.sub(r' href="[^"]*"', "", page))
        return HTML(
            f'<div><iframe title="{title}" sandbox loading="lazy" style="{FRAME}" srcdoc="{inert}"></iframe></div>'
        )

    def close(self) -> None:
        """Remove the folder, and end the process that the commands are forked from."""
        self._open.close()


def sandbox_remark(one: MadeUpClass) -> Markdown:
    """Return a sentence that says whether the code of the class ran in the sandbox."""
    if one.sandboxed:
        return Markdown("Their code ran in the sandbox.")
    return Markdown(
        "No sandbox was available where this page was built, so their code ran without one (`--unsandboxed`), and "
        "every result is flagged."
    )

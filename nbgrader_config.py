"""How nbgrader releases, grades and reports this course, for its own commands and for `python -m grading` alike.

A class lives in `class/`, or where the environment variable ATTENTION_CLASS says. Its gradebook is an SQLite file
there, or the database whose SQLAlchemy URL is in ATTENTION_DB, such as postgresql+psycopg://user:password@host/class.
"""

import os
from pathlib import Path

import nbgrader

from grading.class_settings import read_class
from grading.course import Course
from grading.handout import RELEASED_FOLDER
from grading.page_settings import FEEDBACK_TEMPLATE, FILTERS, TEMPLATES

course = Course.at(Path(__file__).parent)
course.folder.mkdir(parents=True, exist_ok=True)  # SQLite makes a file, but no folder to put it in

c = get_config()  # noqa: F821 (nbgrader provides it)

c.CourseDirectory.course_id = "attention"
c.CourseDirectory.root = str(course.root)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = str(RELEASED_FOLDER)  # in exercises/ a notebook may be somebody's work
c.CourseDirectory.submitted_directory = str(course.folder / "submitted")
c.CourseDirectory.autograded_directory = str(course.folder / "autograded")
c.CourseDirectory.feedback_directory = str(course.folder / "feedback")
c.CourseDirectory.solution_directory = str(course.folder / "solution")
c.CourseDirectory.source_with_tests_directory = str(course.folder / "source_with_tests")
c.CourseDirectory.db_url = os.environ.get("ATTENTION_DB") or f"sqlite:///{course.folder / 'gradebook.db'}"

c.GenerateAssignment.permissions = 444  # in octal digits: nobody works in what is released

# An export without `--to` goes to the class, and not into the repository, where it could be committed.
c.ExportPlugin.to = str(course.folder / "grades.csv")

# nbgrader's own steps, but for those that read a submission and run it, as `python -m grading run` does for a class.
c.Autograde.sanitize_preprocessors = ["grading.autograde_preprocessors.Admit"]
c.Autograde.autograde_preprocessors = [
    "grading.autograde_preprocessors.Grade",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "grading.rendering.Sanitize",
]

# Late work costs what the settings of the class say, and nothing without them. For another rule, give
# c.AssignLatePenalties.plugin_class a class of your own, as the book's page *The term* shows.
if share := read_class(course).late_penalty_per_day:
    c.AssignLatePenalties.plugin_class = "grading.late_penalty.SharePerDay"
    c.SharePerDay.share = share

nbgraders_templates = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"

# What shows a submission asks no other host for anything, and runs nothing that came with it: feedback and Formgrader.
c.HTMLExporter.preprocessors = ["grading.rendering.Sanitize"]
c.HTMLExporter.filters = FILTERS
c.DataTypeFilter.display_data_priority = ["text/html", "text/markdown", "image/png", "image/jpeg", "text/plain"]

# Formgrader takes its template from here: nbgrader's own, under a content security policy.
c.HTMLExporter.template_name = "course-formgrade"
c.HTMLExporter.extra_template_basedirs = [str(TEMPLATES), str(nbgraders_templates)]
c.HTMLExporter.extra_template_paths = [str(nbgraders_templates)]

c.GenerateFeedback.exporter_class = "grading.feedback.FeedbackExporter"
c.GenerateFeedback.preprocessors = ["grading.exam.withhold.Withhold", "grading.feedback_scores.Scores"]
c.FeedbackExporter.template_name = FEEDBACK_TEMPLATE

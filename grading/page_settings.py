"""Settings of feedback pages, for nbgrader_config.py and for the fork server that compiles the templates beforehand."""

from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")
FEEDBACK_TEMPLATE = "course-feedback"
FILTERS = {"markdown2html": "grading.feedback.markdown", "points": "grading.text.points"}

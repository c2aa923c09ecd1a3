"""Take a share of the score off for each day that a submission is late."""

from traitlets import Float

from grading._nbgrader import BasePlugin

SECONDS_PER_DAY = 86_400


class SharePerDay(BasePlugin):  # type: ignore[misc]
    """The plugin that ``nbgrader_config.py`` uses if the settings of the class name a share."""

    share = Float(0.0, min=0.0, max=1.0, help="the share of the score that each day costs").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float:
        """Return the points to take off, at most all of them. A part of a day counts as a whole one."""
        days = -(-total_seconds_late // SECONDS_PER_DAY)
        return float(min(score, self.share * days * score))

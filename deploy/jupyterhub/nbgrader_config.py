"""nbgrader's settings in each server of the hub. The grader's server also reads the course's nbgrader_config.py."""

c = get_config()  # noqa: F821 (nbgrader provides it)

c.CourseDirectory.course_id = "attention"
c.Exchange.root = "/srv/exchange"

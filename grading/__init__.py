"""Release an assignment, grade a class with nbgrader, and report what it got right and what it got wrong.

Nothing here knows any single exercise: what a graded cell earned, and which mistake was made, stands in its outputs.
"""

"""Turns what a student handed in into a notebook that is fit to be graded.

Honest accidents are repaired, and every repair is reported; what is hostile or unreadable is refused with a verdict.
The steps, in order: ``files`` finds and reads the files that came, ``decode`` makes text of their bytes, ``parse``
reads cells, ``match_cells`` finds the assignment's cells among them, ``choose`` picks the file that is meant, and
``assemble`` puts the notebook together from the assignment's own cells. ``notebook`` runs all of these steps.
"""

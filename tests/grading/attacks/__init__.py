"""Attacks on the grading engine, as data: what a hostile or unlucky notebook holds, and what must come of it."""

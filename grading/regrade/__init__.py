"""Regrade requests: kept in the log of the assignment, rerun beside the marks that were given, and decided."""

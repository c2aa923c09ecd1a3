"""Regrade requests: log them, grade the submissions again to compare the marks, and decide on them."""

"""Grades tests by what they catch: every correct version of a function has to pass them, and mutants should not.

A mutant is one of the mistakes of the catalogue. A test is a function that takes an implementation, and returns or
raises. It sees an implementation only through its calls, which :mod:`attnlib.checks.mutation.answers` answers.
"""

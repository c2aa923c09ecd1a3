"""Calls a student's function or class with the inputs of a case, and collects what it returns.

Only this folder of ``attnlib.checks`` goes into the grading sandbox (:mod:`grading.sandbox.payload`), where a student's
code can read it. So nothing here knows a reference, an expected value or a known mistake.
"""

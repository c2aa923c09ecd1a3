"""Reads the source of a submission, without running it, and flags what an instructor should look at.

``scopes`` resolves names to the functions of libraries that they stand for, ``references`` lists what each statement
refers to, ``rules`` says which references are suspicious, and ``flags`` collects the places to look at.
"""

"""Correct versions of the functions that tests are written for, in the styles that students write.

They differ in all that the tasks leave open: how they round, which dtype and which kind of sequence they return, and
what they make of arguments that make no sense. A test that rejects one of them demands more than the task says.
"""

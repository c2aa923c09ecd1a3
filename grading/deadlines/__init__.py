"""Deadlines for individual students: extensions and accommodations in one table, and late days that everybody has."""

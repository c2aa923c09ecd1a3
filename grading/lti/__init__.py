"""Grades for a learning management system through LTI 1.3 Advantage: its service for assignments and grades."""

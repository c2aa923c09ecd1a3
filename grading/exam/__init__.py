"""Exams: assignments with a time window, during which students are told nothing about their answers."""

"""Collect submissions: read what a learning management system lets instructors download, and keep every attempt."""

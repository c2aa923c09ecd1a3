"""Written answers marked by several assistants: a file for each, a blind second marking, and how well they agree."""

"""What a class keeps about one student: show it, export it, erase it."""

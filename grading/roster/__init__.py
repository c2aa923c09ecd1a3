"""Import a roster, the list of a class that a learning management system exports, into nbgrader's gradebook."""

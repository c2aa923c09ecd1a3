"""nbgrader's gradebook: looking things up in it, writing what submissions earned, and copying it as a whole."""

"""The place where student code runs: a box without network, files or secrets, with one process for each submission."""

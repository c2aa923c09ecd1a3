"""Where student code runs: a box without network, files or secrets, and one fresh process in it for each submission."""

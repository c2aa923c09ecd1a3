"""What an instructor sees of a graded class, and exports: how questions fared, what to reteach, whom to talk to."""

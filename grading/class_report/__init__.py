"""What an instructor sees of a graded class and takes along: how questions fared, what to reteach, whom to talk to."""

"""What an instructor sees and exports of a graded class: how questions fared, what to reteach, whom to talk to."""

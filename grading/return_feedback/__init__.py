"""Return feedback: pack it as learning management systems take it, in folders, and as a table for mail merge."""

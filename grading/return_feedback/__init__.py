"""Return feedback: pack it for upload to a learning management system, in folders, and as a table for mail merge."""

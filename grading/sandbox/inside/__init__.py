"""The code that runs inside the box. It is copied there, and nothing that it contains or can reach is secret."""

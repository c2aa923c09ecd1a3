"""What runs inside the box. It is copied there; nothing that it holds, or can reach, is a secret."""

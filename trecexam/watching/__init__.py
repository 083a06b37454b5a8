"""File events, and when a file counts."""

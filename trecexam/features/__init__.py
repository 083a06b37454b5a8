"""What is asked of a track: a folder a question, each with its arithmetic, tables and plots."""

"""Features: one folder per question about a track, with arithmetic, tables and plots."""

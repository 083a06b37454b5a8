"""Questions about a track: one folder per question, each with its arithmetic, tables and plots."""

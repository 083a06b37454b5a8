"""Which judgment by a person would most change the ranking."""

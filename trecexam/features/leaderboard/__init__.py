"""The leaderboard's tables, plot, and other readings of stored answers."""

"""The leaderboard's tables and plot, and significance tests."""

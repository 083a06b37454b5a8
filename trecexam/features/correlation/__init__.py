"""Agreement of the automatic leaderboard with the official one."""

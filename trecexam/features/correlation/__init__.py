"""How far the automatic leaderboard agrees with the official one."""

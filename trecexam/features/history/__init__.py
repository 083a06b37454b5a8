"""The log of what each change did to the leaderboard."""

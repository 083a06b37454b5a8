"""What the values of runs will be once all cells are graded."""

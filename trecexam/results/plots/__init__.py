"""The report's plots: each is its numbers as a table and a function that draws them on a figure."""

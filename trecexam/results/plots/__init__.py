"""Plots of the report: each has a table of numbers and a function that draws them on a figure."""

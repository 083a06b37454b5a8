"""Gathers what out/report.html and out/plots/ show."""

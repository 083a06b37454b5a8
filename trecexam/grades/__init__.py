"""Grades as they are stored and made, people's ratings, and what a track is with them."""

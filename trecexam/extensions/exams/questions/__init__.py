"""Multiple-choice exams: what a model is asked, how its answers are read, which questions are left out.

Nothing here runs a language model or touches a file of the user's.
"""

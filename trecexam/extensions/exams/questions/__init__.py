"""Multiple-choice exams: the prompts of a model, how its answers are read, which questions are left out.

Nothing here runs a language model or touches a file of the user's.
"""

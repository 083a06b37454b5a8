"""Multiple-choice exams: prompts, reading of answers, and filters of questions.

Nothing here runs a language model or touches a file of the user's.
"""

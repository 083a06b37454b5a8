"""Exams taken: response matrices and rubric banks as exams, their fits, and what is written of them."""

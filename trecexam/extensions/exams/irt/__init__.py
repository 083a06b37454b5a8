"""Item response theory: abilities of examinees, quality of items. Pure functions on arrays.

Knows no file, no track and no grader: everywhere an examinee is a row and an item a column of a response
matrix with 1 (right, covered), 0 (wrong, not covered) and NaN (no response).
"""

"""Item response theory: abilities of examinees, quality of items. Pure functions on arrays.

Response matrices have a row per examinee and a column per item, with 1 (right, covered), 0 (wrong, not
covered) and NaN (no response). No module here reads files or tracks.
"""

"""People's ratings in the grader's place."""

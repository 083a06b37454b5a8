"""The pool in the Rubric workbench's records."""

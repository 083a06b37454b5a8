"""A page of results as HTML: the report, the audit, and sections of the live page."""

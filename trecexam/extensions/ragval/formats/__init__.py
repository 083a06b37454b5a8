"""RAGVAL's files: knowledge blocks with questions, and judged answers."""

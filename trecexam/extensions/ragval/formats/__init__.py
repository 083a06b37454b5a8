"""RAGVAL's files: knowledge blocks with questions, and answers with what a judge made of them."""

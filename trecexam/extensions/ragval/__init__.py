"""RAGVAL: questions from knowledge blocks, and answers to them judged for truthfulness and relevance."""

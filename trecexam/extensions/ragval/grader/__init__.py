"""The `ragval` grader: a judge, who sees the knowledge block, scores answers' truthfulness and relevance."""

"""eRAG: from gold outputs, runs and outputs by document to labels, scores and files."""

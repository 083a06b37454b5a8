"""In which order people should judge: what a judgment is expected to change, by what is learned."""

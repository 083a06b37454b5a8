"""Language models behind an OpenAI-compatible server: what goes over the wire, and how it comes back."""

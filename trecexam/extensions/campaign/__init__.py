"""A campaign of people who judge: who judges what, how far they are, how far they agree, what comes of it."""

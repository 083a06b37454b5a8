"""Tables, terminal text and plots for results of any kind."""

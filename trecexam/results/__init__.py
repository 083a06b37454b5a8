"""Tables, terminal text and plots: how results are shown, whatever they are of."""

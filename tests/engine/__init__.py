"""The engine: averages, restarts, progressive predictions, several rules in one sweep, processes."""

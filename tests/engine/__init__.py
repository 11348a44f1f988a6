"""The engine's own promises: bits, restarts, averages, scales, caches."""

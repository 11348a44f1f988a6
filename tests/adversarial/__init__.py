"""Random models whose claims are checked in exact arithmetic: see `checks`."""

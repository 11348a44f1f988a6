"""Laws that hold for every rule; a new rule is found by discovery and needs no edit here."""

"""From a cosine bound to a learner, and what is proven of it."""

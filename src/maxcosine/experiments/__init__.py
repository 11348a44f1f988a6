"""The paper's experiment, and a laboratory for every learner after it."""

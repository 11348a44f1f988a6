"""The paper's experiment: data sets, protocol, statistics and reports, for any rules."""

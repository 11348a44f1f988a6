"""What every rule learns from small streams, bit by bit."""

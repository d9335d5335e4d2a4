"""What the command does to its own process: signals, streams, how it ends."""

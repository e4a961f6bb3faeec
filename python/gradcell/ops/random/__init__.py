"""Random numbers, and the state they are drawn from."""

"""What layers, losses and optimisers are made of."""

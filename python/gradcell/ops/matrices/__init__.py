"""Products of matrices, factorisations, linear systems, Fourier transforms."""

"""Conway's game by rolling and by slices, and a smooth variant whose cells are numbers."""

import numpy as np

rng = np.random.default_rng(8)
parameters = rng.random((10, 10))


def neighbours(board):
    total = np.zeros(board.shape)
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            if (i, j) != (0, 0):
                total = total + np.roll(np.roll(board, i, axis=0), j, axis=1)
    return total


def step(board):
    n = neighbours(board)
    return ((n == 3) | ((board == 1) & (n == 2))).astype(int)


def program(cells):
    board = (cells > 0.6).astype(int)
    alive = [board.sum()]
    for _ in range(6):
        board = step(board)
        alive.append(board.sum())
    glider = np.zeros((10, 10), dtype=int)
    glider[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1
    for _ in range(4):
        glider = step(glider)
    rows, columns = np.nonzero(glider)
    soft = cells
    for _ in range(3):
        n = neighbours(soft)
        born = np.exp(-((n - 3.0) ** 2))
        stays = np.exp(-((n - 2.5) ** 2) / 2)
        soft = (1 - soft) * born + soft * stays
    return np.concatenate([alive, rows, columns, board.ravel(), soft.ravel()])

"""A variational autoencoder of handwritten digits, 8 x 8, with two latent variables.

Kingma and Welling (2014): the encoder gives mean and logarithm of the variance of a normal
distribution, the decoder sees mean + deviation times noise; the loss is the picture's cross entropy
plus the divergence from the standard normal distribution.

    python -m gradcell run vae.py          (the digits come with scikit-learn)
"""

import mindspore as ms
import numpy as np
import pictures
from mindspore import Tensor, dataset as ds, nn, ops
from sklearn.datasets import load_digits


class Autoencoder(nn.Cell):
    def __init__(self, latent=2, width=128):
        super().__init__()
        self.encoder = nn.SequentialCell(
            nn.Dense(64, width), nn.ReLU(), nn.Dense(width, width), nn.ReLU()
        )
        self.mean, self.log_variance = nn.Dense(width, latent), nn.Dense(width, latent)
        self.decoder = nn.SequentialCell(
            nn.Dense(latent, width),
            nn.ReLU(),
            nn.Dense(width, width),
            nn.ReLU(),
            nn.Dense(width, 64),
        )
        self.entropy = nn.BCEWithLogitsLoss(reduction="sum")

    def construct(self, picture, noise):
        hidden = self.encoder(picture)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        logits = self.decoder(mean + ops.exp(log_variance / 2) * noise)
        divergence = -0.5 * (1 + log_variance - ops.square(mean) - ops.exp(log_variance)).sum()
        return (self.entropy(logits, picture) + divergence) / picture.shape[0]


def main():
    options = pictures.options(__doc__.splitlines()[0], "vae.png", epochs=150, batch=128, seed=2)
    ms.set_seed(options.seed)
    ds.config.set_seed(options.seed)
    ms.set_context(mode=ms.GRAPH_MODE)
    random = np.random.default_rng(options.seed)
    digits = load_digits()
    data = (digits.data / 16).astype(np.float32)
    batches = ds.NumpySlicesDataset({"picture": data}, shuffle=True).batch(options.batch, True)
    net = Autoencoder()
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), learning_rate=2e-3))
    step.set_train()
    losses = []
    for epoch in range(options.epochs):
        epoch_losses = []
        for batch in batches.create_dict_iterator():
            noise = random.normal(size=(options.batch, 2)).astype(np.float32)
            epoch_losses.append(step(batch["picture"], Tensor(noise)))
        losses.append(float(np.mean([loss.asnumpy() for loss in epoch_losses])))
        if (epoch + 1) % max(options.epochs // 5, 1) == 0:
            print(f"epoch {epoch + 1:4d}  loss {losses[-1]:.2f}", flush=True)
    print(f"nats a picture: {losses[0]:.1f} -> {losses[-1]:.1f}")
    if options.picture and (made := pictures.figure(3)):
        figure, (curve, places, grid) = made
        curve.plot(losses)
        curve.set(xlabel="epoch", ylabel="nats a picture")
        at = net.mean(net.encoder(Tensor(data))).asnumpy()
        dots = places.scatter(*at.T, c=digits.target, s=4, cmap="tab10")
        places.set_title("where the digits lie")
        figure.colorbar(dots, ax=places)
        n, reach = 10, 2.5
        side = reach * (2 * np.arange(n, dtype=np.float32) + 1 - n) / n  # middles of the tiles
        latent = np.stack(np.meshgrid(side, side[::-1]), -1).reshape(-1, 2)
        tiles = ops.sigmoid(net.decoder(Tensor(latent))).asnumpy().reshape(n, n, 8, 8)
        tiles = np.pad(tiles, ((0, 0), (0, 0), (1, 1), (1, 1)))  # a margin
        picture = tiles.transpose(0, 2, 1, 3).reshape(10 * n, 10 * n)
        grid.imshow(picture, cmap="gray_r", extent=[-reach, reach, -reach, reach])
        grid.set_title("what the decoder draws there")
        pictures.save(figure, options.picture)


if __name__ == "__main__":
    main()

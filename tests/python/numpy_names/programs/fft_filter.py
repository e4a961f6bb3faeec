"""A signal's spectrum, a low pass in frequency, a convolution by transforms, Welch's average."""

import numpy as np

t = np.arange(128) / 64.0
parameters = np.sin(2 * np.pi * 3 * t) + 0.5 * np.cos(2 * np.pi * 11 * t)
parameters = parameters + 0.2 * np.random.default_rng(9).normal(size=t.size)


def program(signal):
    spectrum = np.fft.rfft(signal)
    frequencies = np.fft.rfftfreq(len(signal), d=1 / 64)
    power = np.abs(spectrum) ** 2 / len(signal)
    peak = frequencies[np.argmax(power[1:]) + 1]
    kept = np.where(frequencies < 6.0, spectrum, 0)
    smooth = np.fft.irfft(kept, n=len(signal))
    window = np.hanning(32)
    pieces = np.array([signal[i : i + 32] * window for i in range(0, 97, 16)])
    welch = np.mean(np.abs(np.fft.fft(pieces, axis=1)[:, :17]) ** 2, axis=0)
    kernel = np.exp(-np.arange(16) / 4.0)
    n = len(signal) + len(kernel) - 1
    long = np.real(np.fft.ifft(np.fft.fft(signal, n) * np.fft.fft(kernel, n)))
    assert np.allclose(long, np.convolve(signal, kernel))
    phase = np.unwrap(np.angle(spectrum[1:4]))
    shifted = np.fft.fftshift(np.abs(np.fft.fft(signal)))[60:68]
    return np.concatenate([smooth[::8], welch, long[::16], phase, shifted, [peak, power.sum()]])

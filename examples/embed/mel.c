// SPDX-License-Identifier: MIT OR Apache-2.0
// The logarithms of what 256 samples at 8 kHz have in 20 bands of the mel scale, as `--data audio:...,mels=20` computes
// them: a window, a Fourier transform, triangles over its powers. A model like any other, without weights.
#include <burncc/model.h>
#include <math.h>

enum { RATE = 8000, WINDOW = 256, BINS = WINDOW / 2 + 1, MELS = 20 };

static double frequency(double m) // of the m-th corner: even steps of mel from 0 to half the rate
{
    return 700 * (pow(1 + RATE / 2 / 700.0, m / (MELS + 1)) - 1);
}

MODEL(mel)
{
    static float triangles[BINS][MELS];
    for (int b = 0; b < BINS; b++)
        for (int m = 0; m < MELS; m++) {
            const double f = (double)b * RATE / WINDOW, low = frequency(m), top = frequency(m + 1);
            const double up = (f - low) / (top - low), down = (frequency(m + 2) - f) / (frequency(m + 2) - top);
            triangles[b][m] = (float)fmax(0, fmin(up, down));
        }
    Tensor x = mul(input("samples", F32, 1, WINDOW), hann_window(WINDOW));
    Tensor power = sum(square(rfft(x, 1, WINDOW)), 2);
    output("mel", log(maximum(matmul(power, constant(F32, triangles, BINS, MELS)), 1e-10)));
}

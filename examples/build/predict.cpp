// SPDX-License-Identifier: MIT OR Apache-2.0
// predict.c in C++17: one prediction by digits.c, which burncc writes.
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "digits.h"

int main(int argc, char **argv) {
    std::ifstream file(argc == 2 ? argv[1] : "", std::ios::binary);
    std::string magic;
    int width = 0, height = 0, white = 0;
    std::array<char, 28 * 28> pixels{};
    file >> magic >> width >> height >> white;
    file.get();
    if (magic != "P5" || width != 28 || height != 28 || !file.read(pixels.data(), pixels.size())) {
        std::cerr << "usage: " << argv[0] << " IMAGE.pgm   (28x28, one byte a pixel)\n";
        return 2;
    }
    std::array<float, 28 * 28> image;
    std::array<float, 10> logits;
    std::transform(pixels.begin(), pixels.end(), image.begin(),
                   [](char pixel) { return static_cast<float>(static_cast<unsigned char>(pixel)) / 255; });
    auto workspace = std::make_unique<digits_workspace>();
    if (digits_run(workspace.get(), image.data(), logits.data())) return 1;
    std::cout << std::max_element(logits.begin(), logits.end()) - logits.begin() << '\n';
}

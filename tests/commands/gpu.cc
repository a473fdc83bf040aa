// SPDX-License-Identifier: MIT OR Apache-2.0
// burn::vk of runtime/burn.hpp: runs, one after the other and under way together, values that stay on the device,
// objects that go in another order than they came, and what is thrown. In: the digit's image. Out: 0, or the number of
// what is wrong.
#include "burn.hpp"
#include "digit.hh"
#include "digits_gpu.h"

#include <cstdio>
#include <optional>

static int runs(const burn::vk::device &device, const std::vector<float> &image)
{
    burn::vk::session digits(device, digits_gpu_program, burn::weights(digits_gpu_weights));
    burn::vk::workspace first(digits), second(digits);
    auto out = first.run({burn::view(image, {1, 1, 28, 28})});
    if (out.size() != 1 || digit_of(out[0].as<float>()) != 7)
        return 1;

    /* two under way; the second reads its image from memory of the device and leaves its logits there */
    burn::vk::buffer kept(device, 4096);
    kept.write(burn::span<const float>(image.data(), image.size()));
    second.bind_input(0, kept);
    second.bind_output(0, kept, 3584);
    burn::tensor again(BURN_FLOAT, {1, 10});
    burn::view in(image, {1, 1, 28, 28});
    const burn_tensor given = in.tensor(), told = again.in_place(), none{};
    first.submit({&given, 1}, {&told, 1});
    second.submit({&none, 1}, {&none, 1});
    while (!first.poll()) {}
    second.wait();
    std::vector<float> logits(10);
    kept.read(burn::span<float>(logits.data(), logits.size()), 3584);
    for (std::size_t i = 0; i < 10; i++)
        if (logits[i] != again.as<float>()[i])
            return 2;

    /* and to memory of the host, which is read where it lies */
    auto host = burn::vk::buffer::on_host(device, 40);
    second.bind_output(0, host);
    second.submit({&none, 1}, {&none, 1});
    second.wait();
    for (std::size_t i = 0; i < 10; i++)
        if (static_cast<const float *>(host.map())[i] != logits[i])
            return 7;

    if (code_of([&] { first.run({}); }) != BURN_EINVAL)
        return 3;
    if (code_of([&] { first.run({burn::view(image, {28, 28})}); }) != BURN_ESHAPE)
        return 4;
    if (code_of([&] { kept.read(burn::span<float>(logits.data(), 10), 4090); }) != BURN_EINVAL)
        return 5;
    if (code_of([&] { burn::vk::session(device, digits_gpu_program); }) != BURN_EINVAL)
        return 6;
    return 0;
}

int main(int argc, char **argv)
{
    std::vector<unsigned char> bytes(784);
    std::vector<float> image(784);
    std::FILE *file = argc == 2 ? std::fopen(argv[1], "rb") : nullptr;
    if (!file || std::fseek(file, -784, SEEK_END) || std::fread(bytes.data(), 1, 784, file) != 784)
        return 10;
    std::fclose(file);
    for (std::size_t i = 0; i < 784; i++)
        image[i] = static_cast<float>(bytes[i]) / 255.0f;

    std::optional<burn::vk::device> device(std::in_place);
    if (const int wrong = runs(*device, image))
        return wrong;
    if (device->bytes() != 0)
        return 11;                                      // all of it was freed
    /* the device and the session go first: the workspace keeps them */
    std::optional<burn::vk::session> digits(std::in_place, *device, digits_gpu_program,
                                            burn::weights(digits_gpu_weights));
    burn::vk::workspace last(*digits);
    digits.reset();
    device.reset();
    if (digit_of(last.run({burn::view(image, {1, 1, 28, 28})})[0].as<float>()) != 7)
        return 12;
    return code_of([] { burn::vk::device("no such device"); }) == BURN_ENODEV ? 0 : 13;
}

// A prediction by @NAME@.c, which burncc writes for @MODEL@: reads a file of numbers for each input, prints those of
// each output. A file that ends early is filled up with its last number. Inputs and outputs are taken to be floats.
#include <fstream>
#include <iostream>
#include <vector>

#include "@NAME@.h"

int main(int argc, char **argv) {
    const burn_model &model = @NAME@_model;
    std::vector<std::vector<float>> data;
    std::vector<burn_tensor> tensors;
    for (int i = 0; i < model.input_count + model.output_count; i++) {
        const bool in = i < model.input_count;
        const burn_tensor_info &info = in ? model.inputs[i] : model.outputs[i - model.input_count];
        if (info.dtype != BURN_FLOAT) {
            std::cerr << info.name << ": not of floats\n";
            return 1;
        }
        std::vector<float> values(info.bytes / sizeof(float));
        if (in && i + 1 < argc) {
            std::ifstream file(argv[i + 1]);
            float last = 0;
            if (!file) {
                std::cerr << argv[i + 1] << ": cannot be read\n";
                return 1;
            }
            for (float &value : values) {
                float next;
                if (file >> next) last = next;
                value = last;
            }
        }
        data.push_back(std::move(values));
        burn_tensor tensor{};
        tensor.data = data.back().data();
        tensor.bytes = info.bytes;
        tensors.push_back(tensor);
    }
    std::vector<double> workspace(model.workspace_bytes / sizeof(double) + 1);
    const int error = model.run(nullptr, workspace.data(), nullptr, tensors.data(), tensors.data() + model.input_count);
    if (error) std::cerr << model.name << ": " << burn_strerror(error) << "\n";
    for (int i = 0; i < model.output_count && !error; i++) {
        std::cout << model.outputs[i].name << ":";
        for (float value : data[static_cast<size_t>(model.input_count + i)]) std::cout << " " << value;
        std::cout << "\n";
    }
    return error != 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A value that stays on the GPU, on a device that the program made itself. In: a model of one step, whose input `s` and
// output `next` have one shape. Out: s after a hundred steps; the host writes the first and reads the last.
//
//     burncc examples/gpu/step.c --target vulkan -o step_gpu.c
//     cc -O2 -I . -I runtime examples/gpu/stays.c step_gpu.c runtime/vulkan.c -lvulkan -o stays_gpu
//     ./stays_gpu
#include <stdio.h>

#include "vulkan.h"
#include "step_gpu.h"

enum { N = 4, STEPS = 100 };

// A program's own instance, device and queue: the first device, with the features that kernels may use.
static VkResult make_device(burn_vk_own *own, burn_vk_features *features) {
    uint32_t count = 1;
    const float priority = 1;
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app};
    VkResult result = vkCreateInstance(&info, NULL, &own->instance);
    if (result == VK_SUCCESS) result = vkEnumeratePhysicalDevices(own->instance, &count, &own->physical);
    if (result < 0 || count == 0) return VK_ERROR_INITIALIZATION_FAILED;
    burn_vk_features_of(own->physical, features);
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueCount = 1, .pQueuePriorities = &priority}; // of family 0
    const VkDeviceCreateInfo device = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &features->core,
        .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue};
    result = vkCreateDevice(own->physical, &device, NULL, &own->device);
    if (result == VK_SUCCESS) vkGetDeviceQueue(own->device, 0, 0, &own->queue);
    return result;
}

int main(void) {
    burn_vk_features features;
    burn_vk_own own = {.features = &features};
    burn_vk *device = NULL;
    burn_vk_session *session = NULL;
    burn_vk_workspace *run = NULL;
    const float first[N] = {0, 1, 2, 3};
    float last[N] = {0};

    if (make_device(&own, &features) != VK_SUCCESS) return fprintf(stderr, "no Vulkan device\n"), 1;
    int error = burn_vk_adopt(&device, &own);
    if (!error) error = burn_vk_load(device, &step_gpu_program, NULL, &session);
    if (!error) error = burn_vk_workspace_new(session, &run);
    burn_vk_buffer *memory = burn_vk_workspace_buffer(run);
    const size_t place = step_gpu_program.outputs[0].offset; // where `next` lies: the state

    if (!error) error = burn_vk_bind_input(run, 0, memory, place); // s is what next was
    if (!error) error = burn_vk_bind_output(run, 0, memory, place); // which nobody copies
    if (!error) error = burn_vk_write(memory, place, first, sizeof first);
    for (int i = 0; i < STEPS && !error; i++) {
        error = burn_vk_submit(run, NULL, NULL);
        if (!error) error = burn_vk_wait(run);
    }
    if (!error) error = burn_vk_read(memory, place, last, sizeof last);
    if (error) fprintf(stderr, "error %d: %s\n", error, burn_vk_last_error(device));
    else printf("%g %g %g %g after %d steps\n", last[0], last[1], last[2], last[3], STEPS);

    burn_vk_workspace_free(run);
    burn_vk_session_free(session);
    burn_vk_close(device); // the device is still the program's
    vkDestroyDevice(own.device, NULL);
    vkDestroyInstance(own.instance, NULL);
    return error != 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A device with one queue as one with two: where `two_queues` is set, a family that only copies is listed behind those
 * there are, and what is asked of it is done by the first queue. For tests that compile runtime/vulkan.c in, with these
 * in place of Vulkan's calls. A card's own such family comes first, and is the one that is used. */
#ifndef BURNCC_TESTS_TWO_QUEUES_H
#define BURNCC_TESTS_TWO_QUEUES_H
#include <stdbool.h>

#include <vulkan/vulkan.h>

static bool two_queues;
static uint32_t listed_family = UINT32_MAX, first_family;

static inline void two_vkGetPhysicalDeviceQueueFamilyProperties(
    VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties *out)
{
    const uint32_t room = *count;
    vkGetPhysicalDeviceQueueFamilyProperties(physical, count, out);
    if (!two_queues || *count == room)
        return;
    listed_family = *count;
    out[(*count)++] = (VkQueueFamilyProperties){ .queueFlags = VK_QUEUE_TRANSFER_BIT, .queueCount = 1 };
}

static inline VkResult two_vkCreateDevice(
    VkPhysicalDevice physical, const VkDeviceCreateInfo *info, const VkAllocationCallbacks *a, VkDevice *out)
{
    VkDeviceCreateInfo real = *info;
    first_family = info->pQueueCreateInfos[0].queueFamilyIndex;
    if (real.queueCreateInfoCount == 2 && info->pQueueCreateInfos[1].queueFamilyIndex == listed_family)
        real.queueCreateInfoCount = 1;
    return vkCreateDevice(physical, &real, a, out);
}

static inline void two_vkGetDeviceQueue(VkDevice device, uint32_t family, uint32_t number, VkQueue *out)
{
    vkGetDeviceQueue(device, family == listed_family ? first_family : family, number, out);
}

static inline VkResult two_vkCreateCommandPool(
    VkDevice device, const VkCommandPoolCreateInfo *info, const VkAllocationCallbacks *a, VkCommandPool *out)
{
    VkCommandPoolCreateInfo real = *info;
    if (real.queueFamilyIndex == listed_family)
        real.queueFamilyIndex = first_family;
    return vkCreateCommandPool(device, &real, a, out);
}

/* The software driver may still hold on to a value that it has waited for when all has ended: idle, it does not. */
static inline void two_vkDestroySemaphore(VkDevice device, VkSemaphore semaphore, const VkAllocationCallbacks *a)
{
    if (two_queues && semaphore != VK_NULL_HANDLE)
        vkDeviceWaitIdle(device);
    vkDestroySemaphore(device, semaphore, a);
}

static inline VkResult two_vkCreateBuffer(
    VkDevice device, const VkBufferCreateInfo *info, const VkAllocationCallbacks *a, VkBuffer *out)
{
    VkBufferCreateInfo real = *info;
    if (real.sharingMode == VK_SHARING_MODE_CONCURRENT && real.pQueueFamilyIndices[1] == listed_family)
        real.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    return vkCreateBuffer(device, &real, a, out);
}

#endif

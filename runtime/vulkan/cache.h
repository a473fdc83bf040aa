// SPDX-License-Identifier: MIT OR Apache-2.0
// A part of runtime/vulkan.c: the file of compiled pipelines. A head says what the driver's data must be, for drivers
// have been seen to trust theirs; the file is written beside itself and renamed, so a reader meets the old one or the
// new one, whoever dies meanwhile.

#define CACHE_MAGIC "burnvk1"

typedef struct {
    char magic[8];
    uint64_t bytes; /* of the data behind this */
    uint64_t sum;   /* FNV-1a of it */
    uint32_t vendor, device, driver, abi; /* abi: of pointers, since one folder may serve two */
    uint8_t uuid[VK_UUID_SIZE];
} CacheHead;

static uint64_t cache_sum(const unsigned char *data, size_t bytes)
{
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ data[i]) * 1099511628211u;
    return sum;
}

static CacheHead cache_head(const burn_vk *vk, const unsigned char *data, size_t bytes)
{
    CacheHead head = { CACHE_MAGIC, bytes, cache_sum(data, bytes), vk->properties.vendorID, vk->properties.deviceID,
        vk->properties.driverVersion, (uint32_t)sizeof(void *), { 0 } };
    memcpy(head.uuid, vk->properties.pipelineCacheUUID, VK_UUID_SIZE);
    return head;
}

/* The data of the file, which the caller frees; NULL: none that is whole and this driver's. */
static unsigned char *cache_read(const burn_vk *vk, size_t *bytes)
{
    CacheHead head;
    unsigned char *data = NULL;
    FILE *file = fopen(vk->cache_path, "rb");
    if (file == NULL)
        return NULL;
    if (fread(&head, sizeof head, 1, file) == 1 && head.bytes > 0 && head.bytes < SIZE_MAX / 2 &&
        fseek(file, 0, SEEK_END) == 0 && ftell(file) == (long)(sizeof head + head.bytes) &&
        fseek(file, (long)sizeof head, SEEK_SET) == 0)
        data = malloc((size_t)head.bytes);
    bool whole = data != NULL && fread(data, (size_t)head.bytes, 1, file) == 1;
    fclose(file);
    if (whole) {
        const CacheHead want = cache_head(vk, data, (size_t)head.bytes);
        whole = memcmp(&head, &want, sizeof head) == 0;
    }
    if (!whole) {
        free(data);
        return NULL;
    }
    *bytes = (size_t)head.bytes;
    return data;
}

/* Beside the file under a name of this process's own, then in its place. */
static bool cache_write(const burn_vk *vk, const unsigned char *data, size_t bytes)
{
    const size_t room = strlen(vk->cache_path) + 32;
    const CacheHead head = cache_head(vk, data, bytes);
    char *path = malloc(room);
    if (path == NULL)
        return false;
    snprintf(path, room, "%s.%ld", vk->cache_path, (long)getpid());
    FILE *file = fopen(path, "wb");
    bool ok = file != NULL && fwrite(&head, sizeof head, 1, file) == 1 && fwrite(data, bytes, 1, file) == 1 &&
              fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    ok = ok && rename(path, vk->cache_path) == 0;
    if (file != NULL && !ok)
        remove(path);
    free(path);
    return ok;
}

VkPipelineCache burn_vk_pipelines(const burn_vk *vk) { return vk->cache; }

/* After pipelines were made: the file follows if there is more to keep. What fails here costs the next start time, and
 * nothing else. */
void burn_vk_pipelines_keep(burn_vk *vk)
{
    size_t bytes = 0;
    if (vk->cache == VK_NULL_HANDLE)
        return;
    pthread_mutex_lock(&vk->cache_lock);
    if (vkGetPipelineCacheData(vk->device, vk->cache, &bytes, NULL) == VK_SUCCESS && bytes > vk->cache_bytes) {
        unsigned char *data = malloc(bytes);
        if (data != NULL && vkGetPipelineCacheData(vk->device, vk->cache, &bytes, data) == VK_SUCCESS &&
            cache_write(vk, data, bytes))
            vk->cache_bytes = bytes;
        free(data);
    }
    pthread_mutex_unlock(&vk->cache_lock);
}

static void cache_close(burn_vk *vk)
{
    vkDestroyPipelineCache(vk->device, vk->cache, NULL);
    vk->cache = VK_NULL_HANDLE;
    free(vk->cache_path);
    vk->cache_path = NULL;
    vk->cache_bytes = 0;
}

/* FOLDER/burn-VENDOR-DEVICE-UUID.vkcache */
static char *cache_name(const burn_vk *vk, const char *folder)
{
    const VkPhysicalDeviceProperties *p = &vk->properties;
    const size_t room = strlen(folder) + 96;
    char *path = malloc(room);
    if (path == NULL)
        return NULL;
    int at = snprintf(path, room, "%s/burn-%04x-%04x-", folder, (unsigned)p->vendorID, (unsigned)p->deviceID);
    for (size_t i = 0; i < VK_UUID_SIZE; i++)
        at += snprintf(path + at, room - (size_t)at, "%02x", p->pipelineCacheUUID[i]);
    snprintf(path + at, room - (size_t)at, ".vkcache");
    return path;
}

int burn_vk_cache(burn_vk *vk, const char *path)
{
    if (vk == NULL || path == NULL)
        return vk_fail(vk, BURN_EINVAL, "burn_vk_cache: no device, or no folder");
    if (access(path, X_OK) != 0)
        return vk_fail(vk, BURN_EIO, "there is no folder %s for compiled pipelines", path);
    cache_close(vk);
    vk->cache_path = cache_name(vk, path);
    if (vk->cache_path == NULL)
        return vk_no_memory(vk);
    size_t bytes = 0;
    unsigned char *data = cache_read(vk, &bytes);
    VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
        .initialDataSize = bytes,
        .pInitialData = data,
    };
    VkResult result = vkCreatePipelineCache(vk->device, &info, NULL, &vk->cache);
    free(data);
    if (result == VK_SUCCESS) {
        vk->cache_bytes = bytes;
        return BURN_OK;
    }
    vk->cache = VK_NULL_HANDLE;
    cache_close(vk);
    return vk_result(vk, result, "vkCreatePipelineCache");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc --version: the version, the licence, and the libraries that this build has.
#include "command.h"
#include "config.h"

#include "codegen/check.h"
#include "codegen/gpu/spirv.h"

#include <protobuf-c/protobuf-c.h>
#if HAVE_VULKAN
#include <vulkan/vulkan_core.h>
#endif

void options_version(void) {
    const char *clang = check_version();
    printf("burncc " BURNCC_VERSION "\nLicence: MIT OR Apache-2.0, as you like\nBuilt with:\n");
    printf("  protobuf-c  %s\n  SPIR-V      %s\n", protobuf_c_version(), spirv_versions());
#if HAVE_VULKAN
    printf("  Vulkan      headers 1.%d.%d\n", VK_API_VERSION_MINOR(VK_HEADER_VERSION_COMPLETE), VK_HEADER_VERSION);
#else
    printf("  Vulkan      no\n");
#endif
    printf("  jansson     " JANSSON_RELEASE "\n  libzip      " LIBZIP_RELEASE "\n");
    printf("  libclang    %s\n", clang ? clang : "no");
    printf("  images      " IMAGE_FORMATS "\n");
    printf("  OpenBLAS    %s\n",
        HAVE_OPENBLAS ? "found (the kernel benchmark's yardstick; generated code wants it with --blas alone)" : "no");
}

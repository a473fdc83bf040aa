// SPDX-License-Identifier: MIT OR Apache-2.0
/* A kernel in parts: on the caller's threads, or one part after the other. Part of generated code that is compiled with
 * --threads.
 */
#include "../../runtime/burn.h"

static void burn_parts(const burn_threads *threads, int parts, void (*task)(void *argument, int part), void *argument)
{
    if (threads)
        threads->run(threads->pool, parts, task, argument);
    else
        for (int part = 0; part < parts; part++)
            task(argument, part);
}

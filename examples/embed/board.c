// SPDX-License-Identifier: MIT OR Apache-2.0
// A Cortex-M4 from its first instruction on: vectors, floating point, variables' first values, and semihosting calls.
// Where everything lies is link.ld's. (Armv7-M Architecture Reference Manual; Semihosting for AArch32, release 2.0.)
#include "board.h"

#include <stdint.h>
#include <string.h>

enum { SYS_OPEN = 1, SYS_CLOSE = 2, SYS_WRITE0 = 4, SYS_READ = 6, SYS_GET_CMDLINE = 0x15, SYS_EXIT = 0x20 };
extern unsigned char data_begin[], data_end[], data_from[], bss_begin[], bss_end[], stack_top[];

static int debugger(int call, const void *what)
{
    register int r0 __asm__("r0") = call;
    register const void *r1 __asm__("r1") = what;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void leave(int status)
{
    const uintptr_t block[2] = {0x20026 /* the program has ended by itself */, (uintptr_t)status};
    debugger(SYS_EXIT, block);
    for (;;) {
    }
}

int board_argument(int at, char *to, int size)
{
    static char line[256];
    const uintptr_t block[2] = {(uintptr_t)line, sizeof line};
    const char *word = line;
    if (debugger(SYS_GET_CMDLINE, block)) return 0;
    for (; at && *word; at--) {
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
    const int n = (int)strcspn(word, " ");
    if (!n || n >= size) return 0;
    memcpy(to, word, (size_t)n);
    to[n] = 0;
    return n;
}

int board_open(const char *path)
{
    const uintptr_t block[3] = {(uintptr_t)path, 1 /* "rb" */, strlen(path)};
    return debugger(SYS_OPEN, block);
}

int board_read(int file, void *to, int bytes)
{
    const uintptr_t block[3] = {(uintptr_t)file, (uintptr_t)to, (uintptr_t)bytes};
    return bytes - debugger(SYS_READ, block);
}

void board_close(int file)
{
    const uintptr_t block[1] = {(uintptr_t)file};
    debugger(SYS_CLOSE, block);
}

void board_print(const char *text)
{
    debugger(SYS_WRITE0, text);
}

void board_number(long long n)
{
    char text[24], *at = text + sizeof text - 1;
    unsigned long long left = n < 0 ? 0ull - (unsigned long long)n : (unsigned long long)n;
    *at = 0;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (n < 0) *--at = '-';
    board_print(at);
}

static void reset(void)
{
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; // CPACR: floating point is on
    __asm__ volatile("dsb\nisb" ::: "memory");
    memcpy(data_begin, data_from, (size_t)(data_end - data_begin));
    memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
    leave(program());
}

static void fault(void)
{
    board_print("the processor met a fault\n");
    leave(3);
}

typedef void Vector(void);
__attribute__((used, section(".vectors"))) Vector *const vectors[16] = {(Vector *)stack_top, reset, fault, fault,
    fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault};

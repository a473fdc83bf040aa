// SPDX-License-Identifier: MIT OR Apache-2.0
// Boards without an operating system, for `--target cortex-m4 --runner qemu-system-arm`: where a target's programs lie
// in memory, and what an emulator is told so that it is such a board.
//
// In: a target and the runner's command. Out: linker scripts, and the words of a command. A runner of another name, a
// debugger's script say, gets the program's path as its last word; it too has to load what lies at these addresses and
// to answer semihosting calls. QEMU counts with -icount: so many nanoseconds an instruction, which its clocks, and so
// the processor's counters, go by.
#include "command.h"

#include <string.h>

typedef struct Board {
    const char *target, *machine;                       // of QEMU
    uint32_t vectors, flash, flash_bytes, ram, ram_bytes;
    double tick;                                        // nanoseconds of the counter that firmware/driver.c reads
} Board;

enum { KILO = 1 << 10, MEGA = 1 << 20, ICOUNT_SHIFT = 6, CODE_BYTES = MEGA };

// The MPS2 boards' PSRAM of 16 MB stands for RAM; the MPS3's 256 MB of DDR for flash and RAM. QEMU 7.2 has no board
// with a Cortex-M0 of that size and none with an M85: their code runs on those that know more.
static const Board boards[] = {
    { "cortex-m0", "mps2-an385", 0, KILO, 4 * MEGA - KILO, 0x21000000, 16 * MEGA, 40 },
    { "cortex-m3", "mps2-an385", 0, KILO, 4 * MEGA - KILO, 0x21000000, 16 * MEGA, 40 },
    { "cortex-m4", "mps2-an386", 0, KILO, 4 * MEGA - KILO, 0x21000000, 16 * MEGA, 40 },
    { "cortex-m7", "mps2-an500", 0, KILO, 4 * MEGA - KILO, 0x60000000, 16 * MEGA, 40 },
    { "cortex-m33", "mps2-an505", 0x10000000, 0x10000000 + KILO, 4 * MEGA - KILO, 0x80000000, 16 * MEGA, 50 },
    { "cortex-m55", "mps3-an547", 0, 0x70000000, 32 * MEGA, 0x72000000, 64 * MEGA, 31.25 },
    { "cortex-m85", "mps3-an547", 0, 0x70000000, 32 * MEGA, 0x72000000, 64 * MEGA, 31.25 },
    { "rv32imc", "virt -bios none", 0x80000000, 0x80000000 + KILO, 32 * MEGA, 0x82000000, 64 * MEGA, 1 },
    { "rv32imafc", "virt -bios none", 0x80000000, 0x80000000 + KILO, 32 * MEGA, 0x82000000, 64 * MEGA, 1 },
    { "rv32imafcv", "virt -bios none -cpu rv32,v=true,vlen=128,vext_spec=v1.0", 0x80000000, 0x80000000 + KILO,
        32 * MEGA, 0x82000000, 64 * MEGA, 1 },
    { "rv64gc", "virt -bios none", 0x80000000, 0x80000000 + KILO, 32 * MEGA, 0x82000000, 64 * MEGA, 1 },
    { "rv64gcv", "virt -bios none -cpu rv64,v=true,vlen=128,vext_spec=v1.0", 0x80000000, 0x80000000 + KILO,
        32 * MEGA, 0x82000000, 64 * MEGA, 1 },
};

static const Board *board_of(const Target *t) {
    for (size_t i = 0; i < COUNT(boards); i++)
        if (!strcmp(boards[i].target, t->name)) return &boards[i];
    return NULL;
}

bool board_bare(const Target *t) { return board_of(t) != NULL; }

static const char *name_of(const char *runner) {
    const char *name = runner + strcspn(runner, " ");
    while (name > runner && name[-1] != '/') name--;
    return name;
}

static bool is_qemu(const char *runner) { return !strncmp(name_of(runner), "qemu-system-", 12); }

// The emulator of this board where the runner is QEMU's for others, or for programs of an operating system.
const char *board_emulator(const Target *t, const char *runner) {
    const char *name = name_of(runner), *arm = "qemu-system-arm", *right = !strncmp(t->name, "cortex-", 7) ? arm :
        !strncmp(t->name, "rv32", 4) ? "qemu-system-riscv32" : "qemu-system-riscv64";
    const bool fits = !strncmp(name, right, strlen(right))
        || (right == arm && !strncmp(name, "qemu-system-aarch64", 19));
    return board_bare(t) && !strncmp(name, "qemu-", 5) && !fits ? right : NULL;
}

// Constants that the board's flash has no room for are loaded to its RAM.
const char *board_link_script(Arena *a, const Target *t, int64_t constants) {
    const Board *b = board_of(t);
    return arena_printf(a,
        "MEMORY\n{\n    VECTORS (rx) : ORIGIN = %#x, LENGTH = %u\n    FLASH (rx) : ORIGIN = %#x, LENGTH = %u\n"
        "    RAM (rwx) : ORIGIN = %#x, LENGTH = %u\n}\nREGION_ALIAS(\"CONSTANTS\", %s)\nENTRY(burncc_entry)\n%s",
        b->vectors, (unsigned)KILO, b->flash, b->flash_bytes, b->ram, b->ram_bytes,
        constants + CODE_BYTES > b->flash_bytes ? "RAM" : "FLASH", template_text("firmware/link.ld"));
}

void board_words(Arena *a, const Target *t, const char *runner, Argv *out) {
    argv_add(a, out, runner);
    if (!is_qemu(runner)) return;
    argv_add(a, out,
        arena_printf(a,
            "-M %s -icount shift=%d -display none -monitor none -serial none "
            "-semihosting-config enable=on,target=native -kernel",
            board_of(t)->machine, ICOUNT_SHIFT));
}

const char *board_count(const Target *t, const char *runner, double *unit) {
    bool emulated = is_qemu(runner);
    *unit = emulated ? board_of(t)->tick / (1 << ICOUNT_SHIFT) : 1;
    return emulated ? "instructions" : "cycles";
}

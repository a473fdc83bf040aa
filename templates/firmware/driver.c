// SPDX-License-Identifier: MIT OR Apache-2.0
/* What driver.c asks of its machine, where there is no operating system: a Cortex-M or a RISC-V processor
 * alone, under an emulator or a debugger that knows semihosting. It holds all that such a program is made of besides
 * the linker script (link.ld): vectors, start-up, memory, and the debugger's calls.
 *
 * The request and the answer are files on the debugger's side, BURNCC_REQUEST and BURNCC_ANSWER. Time is what a counter
 * of the processor counts: SysTick on a Cortex-M, mcycle on RISC-V. In a run the stack below the driver's own is
 * painted, and how much of the paint is gone is what the run took.
 *
 * Semihosting for AArch32 and AArch64, release 2.0 (Arm); RISC-V Semihosting 0.3; Armv7-M and Armv8-M Architecture
 * Reference Manuals.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SYS_OPEN = 1, SYS_CLOSE = 2, SYS_WRITE0 = 4, SYS_WRITE = 5, SYS_READ = 6, SYS_EXIT_EXTENDED = 0x20 };
enum { OPEN_READ = 1, OPEN_WRITE = 5 };

extern unsigned char burncc_data[], burncc_data_end[], burncc_data_load[], burncc_bss[], burncc_bss_end[],
    burncc_heap[], burncc_stack_bottom[], burncc_stack_top[];

/* ---- the processor */
void burncc_entry(void);

#if defined(__riscv)
#define COPY_REGISTER "mv"
/* As numbers: assemblers want an extension named for these instructions that the compiler's flags do not name. */
#define CSR_READ(to, csr) ".insn i 0x73, 2, " to ", x0, " csr "\n"
#define CSR_WRITE(from, csr) ".insn i 0x73, 1, x0, " from ", " csr "\n"
#define CSR_SET(from, csr) ".insn i 0x73, 2, x0, " from ", " csr "\n"

static int semihosting(int number, const void *argument)
{
    register intptr_t a0 __asm__("a0") = number, a1 __asm__("a1") = (intptr_t)argument;
    __asm__ volatile(".balign 16\n.option push\n.option norvc\n" /* on one page */
                     "slli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return (int)a0;
}

#if __riscv_xlen == 64
static uint64_t counted(void)
{
    uint64_t cycles;
    __asm__ volatile(CSR_READ("%0", "-0x500") : "=r"(cycles)); /* mcycle */
    return cycles;
}
#else
static uint64_t counted(void)
{
    uint32_t high, low, again;
    do
        __asm__ volatile(CSR_READ("%0", "-0x480") CSR_READ("%1", "-0x500") CSR_READ("%2", "-0x480")
                         : "=&r"(high), "=&r"(low), "=r"(again)); /* mcycleh, mcycle */
    while (high != again);
    return (uint64_t)high << 32 | low;
}
#endif

static void processor_start(void)
{
}

static void counter_start(void)
{
}
#else
#define COPY_REGISTER "mov"
static volatile uint32_t wraps;
#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
enum { SYST_CSR = (int)0xe000e010, SYST_RVR = (int)0xe000e014, SYST_CVR = (int)0xe000e018, SYST_MASK = 0xffffff };

static int semihosting(int number, const void *argument)
{
    register int r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

/* Cycles of the processor's clock: SysTick counts 24 bits down, its interrupt the rounds. */
static uint64_t counted(void)
{
    uint32_t rounds, ticks;
    do {
        rounds = wraps;
        ticks = SYST_MASK - REGISTER(SYST_CVR);
    } while (rounds != wraps);
    return (uint64_t)rounds << 24 | ticks;
}

static void processor_start(void)
{
    REGISTER(SYST_RVR) = SYST_MASK;
    REGISTER(SYST_CVR) = 0;
}

static void counter_start(void)
{
    REGISTER(SYST_CSR) = 7; /* the processor's clock, interrupt, on: not before, its frames would be on the paint */
}
#endif

/* ---- what driver.c asks for */
__attribute__((noreturn)) static void leave(int status)
{
    const uintptr_t block[2] = {0x20026 /* ADP_Stopped_ApplicationExit */, (uintptr_t)status};
    semihosting(SYS_EXIT_EXTENDED, block);
    for (;;) {
    }
}

static void stop(const char *why)
{
    semihosting(SYS_WRITE0, "the model's driver: ");
    semihosting(SYS_WRITE0, why);
    semihosting(SYS_WRITE0, "\n");
    leave(3);
}

static int opened(const char *path, int mode)
{
    const uintptr_t block[3] = {(uintptr_t)path, (uintptr_t)mode, strlen(path)};
    const int file = semihosting(SYS_OPEN, block);
    if (file < 0)
        stop("the debugger opens neither the request nor the answer");
    return file;
}

static void take(void *to, size_t bytes)
{
    static int request = -1;
    if (request < 0)
        request = opened(BURNCC_REQUEST, OPEN_READ);
    const uintptr_t block[3] = {(uintptr_t)request, (uintptr_t)to, bytes};
    if (bytes && semihosting(SYS_READ, block) != 0)
        stop("the request ends early");
}

static int answer = -1;

static void give(const void *from, size_t bytes)
{
    if (answer < 0)
        answer = opened(BURNCC_ANSWER, OPEN_WRITE);
    const uintptr_t block[3] = {(uintptr_t)answer, (uintptr_t)from, bytes};
    if (bytes && semihosting(SYS_WRITE, block) != 0)
        stop("the answer cannot be written");
}

static void finish(void)
{
    const uintptr_t block[1] = {(uintptr_t)answer};
    if (semihosting(SYS_CLOSE, block) != 0)
        stop("the answer cannot be written");
}

/* Memory from the end of the program's own to the stack's. */
static unsigned char *allocate(size_t bytes)
{
    static unsigned char *next = burncc_heap;
    unsigned char *const p = next;
    if (bytes + 7 > (size_t)(burncc_stack_bottom - next))
        stop("out of memory");
    next += (bytes + 7) / 8 * 8;
    return p;
}

enum { PAINT = 0x5a };

/* Its stack below this function's frame is painted, then run upon. */
__attribute__((noinline)) static int on_paint(int (*job)(void *), void *argument, int64_t *stack)
{
    unsigned char *const here = __builtin_frame_address(0), *end;
    volatile unsigned char *p = burncc_stack_bottom;
    __asm__ volatile(COPY_REGISTER " %0, sp" : "=r"(end));
    for (; p < end; p++)
        *p = PAINT;
    const int code = job(argument);
    for (p = burncc_stack_bottom; p < here && *p == PAINT; p++) {
    }
    *stack = here - p;
    return code;
}

/* The sample is what the counter counted in the second run. */
static int measure(int (*job)(void *), void *argument, double seconds, Measured *out)
{
    int code = on_paint(job, argument, &out->stack);
    if (code || seconds <= 0)
        return code;
    counter_start();
    const uint64_t start = counted(), idle = counted();
    code = job(argument);
    const uint64_t end = counted();
    out->samples = (double *)(void *)allocate(sizeof(double));
    out->samples[out->n++] = (double)(end - idle - (idle - start));
    out->runs++;
    return code;
}

/* ---- start-up */
__attribute__((used, noinline, noreturn)) static void start(void)
{
    memcpy(burncc_data, burncc_data_load, (size_t)(burncc_data_end - burncc_data));
    memset(burncc_bss, 0, (size_t)(burncc_bss_end - burncc_bss));
    processor_start();
    leave(main());
}

#if defined(__riscv)
__attribute__((used, noreturn, aligned(4))) static void fault(void)
{
    stop("the processor met a fault");
    for (;;) {
    }
}

__attribute__((naked, used, section(".vectors"))) void burncc_entry(void)
{
    __asm__ volatile("la sp, burncc_stack_top\nla t0, fault\n" CSR_WRITE("t0", "0x305") /* mtvec */
                     "li t0, 0x2200\n" CSR_SET("t0", "0x300") /* mstatus: floats, vectors on */
                     ".option push\n.option norelax\nla gp, __global_pointer$\n.option pop\n"
                     "la tp, burncc_threads\nj start");
}
/* What a C library keeps for each thread, errno say: zeros will do. */
__attribute__((used)) unsigned char burncc_threads[64] __attribute__((aligned(16)));
#else
static void fault(void)
{
    stop("the processor met a fault");
}

static void tick(void)
{
    wraps++;
}

/* Before anything else: in start a compiler may have saved vectors, and copies by them. */
void burncc_entry(void)
{
#if defined(__ARM_FP)
    REGISTER(0xe000ed88) |= 0xfu << 20; /* CPACR: coprocessors 10 and 11, the floating point unit and MVE */
    __asm__ volatile("dsb\nisb" ::: "memory");
#endif
    start();
}

typedef void Vector(void);
__attribute__((used, section(".vectors"))) Vector *const burncc_vectors[16] = {
    (Vector *)(uintptr_t)burncc_stack_top, burncc_entry, fault, fault, fault, fault, fault, fault,
    fault, fault, fault, fault, fault, fault, fault, tick};
#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A model's file of weights as part of the program, among its constants, at the boundary that the code wants:
 *
 *     cc -c -DWEIGHTS=digits_weights -DFILE='"digits.bin"' examples/infer/weights.S -o digits_weights.o
 *
 * C code knows it as `extern const unsigned char digits_weights[DIGITS_WEIGHTS_BYTES];` and passes it to digits_run. */
#ifdef __APPLE__
    .section __TEXT,__const
#else
    .section .rodata
#endif
    .balign 64
    .globl WEIGHTS
WEIGHTS:
    .incbin FILE
#ifdef __ELF__
    .section .note.GNU-stack,"",%progbits
#endif

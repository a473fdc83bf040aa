// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the templates for matrix units have in common, printed in front of them: their matrices, and of products how
 * workgroups and threads find their part of a block.
 *
 * With BYTES their elements are signed bytes, of which a matrix has as many along k as take the room of 16 halves.
 *
 * Dimensions of matrices carry a mark of which axis they are, M, N or K: which factor a matrix is follows from its two,
 * and codegen/gpu/cooperative.c, which makes a module for VK_KHR_cooperative_matrix of this one, has to say so. */
const int MARKED_M = 0x10010, MARKED_N = 0x20010, MARKED_K = 0x30010, MARKED_BYTES = 0x30020;
#ifdef BYTES
#define MATRIX_A icoopmatNV<8, gl_ScopeSubgroup, MARKED_M, MARKED_BYTES>
#define MATRIX_B icoopmatNV<8, gl_ScopeSubgroup, MARKED_BYTES, MARKED_N>
#define MATRIX_C icoopmatNV<32, gl_ScopeSubgroup, MARKED_M, MARKED_N>
#else
#define MATRIX_A fcoopmatNV<16, gl_ScopeSubgroup, MARKED_M, MARKED_K>
#define MATRIX_B fcoopmatNV<16, gl_ScopeSubgroup, MARKED_K, MARKED_N>
#define MATRIX_C fcoopmatNV<32, gl_ScopeSubgroup, MARKED_M, MARKED_N>
#define MATRIX_R fcoopmatNV<16, gl_ScopeSubgroup, MARKED_M, MARKED_N>        // sums, rounded
#endif

/* The line of a block that vector i is of, where lines have so many. Eight neighbours are written at once: where lines
 * are shorter, those are of lines so far from each other that all of them meet other banks. */
int line_of(int i, int row)
{
    const int line = i / row, at_once = row < 8 ? 8 / row : 1;
    return line / 8 * 8 + line % at_once * (8 / at_once) + line % 8 / at_once;
}

/* Vector i of a block of rows of so many: its first row or column, and its first term. */
ivec2 place(int i, int row, bool along_k)
{
    const int across = i % row * 8, down = line_of(i, row);
    return along_k ? ivec2(down, across) : ivec2(across, down);
}

/* Which block of a product so many blocks high and wide is this workgroup's, row and column: they go in bands, down
 * before they go across, so that workgroups that follow one another share rows of blocks, and so their operands. */
ivec2 block_place(int high, int wide)
{
    const int BAND = 8, id = int(gl_WorkGroupID.y) * wide + int(gl_WorkGroupID.x);
    const int first = id / (BAND * wide) * BAND, rows = min(BAND, high - first), rest = id - first * wide;
    return ivec2(first + rest % rows, rest / rows);
}

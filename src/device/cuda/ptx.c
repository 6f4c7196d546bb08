/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels as text, from the file that tools/make-ptx has made. */
#include "device/cuda/cuda_state.h"

__asm__(".section .rodata,\"a\",%progbits\n"
        ".global rueda_cuda_ptx\n"
        ".hidden rueda_cuda_ptx\n"
        "rueda_cuda_ptx:\n"
        ".incbin \"" RUEDA_CUDA_PTX "\"\n"
        ".byte 0\n"
        ".previous\n");

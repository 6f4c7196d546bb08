/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the library of a driver that is too old. */
__attribute__((visibility("default"))) int cuInit(unsigned flags)
{
    return (int)flags;
}

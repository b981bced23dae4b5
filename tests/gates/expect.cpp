/* SPDX-License-Identifier: MIT */
/* expect.cpp: expect.c in C++. */
#include "expect.c"

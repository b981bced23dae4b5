// SPDX-License-Identifier: MIT
// api.cpp: the same calls from C++.
#include "api.c"

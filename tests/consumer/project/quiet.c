/* SPDX-License-Identifier: MIT */
/* Excluded from instrumentation: its object must not mention the hooks. */
int quiet_function(int value) {
    return value * 3;
}

/* SPDX-License-Identifier: MIT */
/* A file that EXCLUDE_FILES leaves out. */
int unknown(int value);
int in_excluded_file(int value);

int in_excluded_file(int value) {
    return unknown(value) + 1;
}

# SPDX-License-Identifier: MIT
# A project's Makefile with flags of its own, written for no profiler; see ../any_project_test.py.
CFLAGS = -O1 -g -Wall -Werror

strict: main.o libstore.a
	$(CC) $(CFLAGS) -o $@ main.o libstore.a

libstore.a: store.o
	ar rcs $@ store.o

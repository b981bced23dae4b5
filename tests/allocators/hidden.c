/* SPDX-License-Identifier: MIT */
/* hidden.c: a program that allocates nothing but through the library of hidden.cpp. */
void hidden_work(int count);

int main(void) {
    hidden_work(300);
    return 0;
}

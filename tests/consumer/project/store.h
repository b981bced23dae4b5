/* SPDX-License-Identifier: MIT */
#ifndef CONSUMER_STORE_H
#define CONSUMER_STORE_H
#ifdef __cplusplus
extern "C" {
#endif
int store_fill(void);
#ifdef __cplusplus
}
#endif
#endif

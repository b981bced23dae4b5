/* SPDX-License-Identifier: MIT */
/* anyaddress.h: whether an address stands for all of the machine's: 0.0.0.0, ::. Any thread. */
#ifndef ANALYZE_BASE_ANYADDRESS_H
#define ANALYZE_BASE_ANYADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

static inline bool anyaddress_is(const struct sockaddr *address) {
    const void *inner = address;
    return address->sa_family == AF_INET6
               ? IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)inner)->sin6_addr)
               : ((const struct sockaddr_in *)inner)->sin_addr.s_addr == htonl(INADDR_ANY);
}

#endif

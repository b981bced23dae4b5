# SPDX-License-Identifier: MIT
# Cross compilation for MIPS64 big-endian by Debian's packages (gcc-mips64-linux-gnuabi64, g++-mips64-linux-gnuabi64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR mips64)
set(CMAKE_C_COMPILER mips64-linux-gnuabi64-gcc)
set(CMAKE_CXX_COMPILER mips64-linux-gnuabi64-g++)

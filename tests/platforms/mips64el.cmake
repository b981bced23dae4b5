# SPDX-License-Identifier: MIT
# Cross compilation for MIPS64 little-endian by Debian's packages (gcc-mips64el-linux-gnuabi64, g++-mips64el-linux-gnuabi64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR mips64el)
set(CMAKE_C_COMPILER mips64el-linux-gnuabi64-gcc)
set(CMAKE_CXX_COMPILER mips64el-linux-gnuabi64-g++)

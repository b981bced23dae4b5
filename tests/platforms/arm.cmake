# SPDX-License-Identifier: MIT
# Cross compilation for 32-bit ARM by Debian's packages (gcc-arm-linux-gnueabihf, g++-arm-linux-gnueabihf).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_CXX_COMPILER arm-linux-gnueabihf-g++)

! SPDX-License-Identifier: MIT
program consumer
    use store
    implicit none
    call store_fill()
    if (sum(int(kept(10)%bytes)) /= 10000) error stop 1
end program consumer

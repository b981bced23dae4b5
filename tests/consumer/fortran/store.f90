! SPDX-License-Identifier: MIT
! Allocates in Fortran: store_fill -> keep_bytes, ten blocks of 1,000 bytes, never freed.
module store
    implicit none
    type shelf
        integer(1), pointer :: bytes(:)
    end type shelf
    type(shelf), volatile :: kept(10)
contains
    subroutine keep_bytes(slot)
        integer, intent(in) :: slot
        allocate (kept(slot)%bytes(1000))
        kept(slot)%bytes = int(slot, 1)
    end subroutine keep_bytes

    subroutine store_fill()
        integer :: slot
        do slot = 1, 10
            call keep_bytes(slot)
        end do
    end subroutine store_fill
end module store

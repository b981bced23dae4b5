! SPDX-License-Identifier: MIT
! gcc_subject.f90: Fortran for gcc_pass.py: what grows, is passed on and calls itself.
module work
    implicit none
contains
    recursive function tree(depth) result(total)
        integer, intent(in) :: depth
        integer :: total
        integer, allocatable :: values(:)
        allocate (values(depth + 1))
        values = depth
        total = sum(values)
        if (depth > 0) total = total + tree(depth - 1) + tree(depth - 1)
    end function

    function joined(count) result(text)
        integer, intent(in) :: count
        character(len=:), allocatable :: text
        integer :: i
        text = ''
        do i = 1, count
            text = text//'word '
        end do
    end function

    integer function applied(f, n)
        interface
            integer function f(n)
                integer, intent(in) :: n
            end function
        end interface
        integer, intent(in) :: n
        applied = f(n) + f(n + 1)
    end function
end module

program subject
    use work
    implicit none
    print *, tree(6), len(joined(50)), applied(inner, 3)
contains
    integer function inner(n)
        integer, intent(in) :: n
        real, allocatable :: matrix(:, :)
        allocate (matrix(n, n))
        matrix = real(n)
        inner = int(sum(matmul(matrix, matrix)))
    end function
end program

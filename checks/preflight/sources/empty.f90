! Whether there is a Fortran compiler.
end program

! Whether there is a compiler of Fortran.
end program

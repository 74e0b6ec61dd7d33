# Finds an ADIOS2 with Fortran and the same MPI library, for the layers adios. Sets `with_adios`.

include(cmake/FormatLibraries.cmake)

set(with_adios OFF)
set(no_adios)
if(NOT BENCHIO_ADIOS STREQUAL "OFF")
  # Before 2.11, a read of a part of the array in memory writes beside it in Fortran.
  find_package(adios2 2.11 QUIET COMPONENTS Fortran MPI)
  if(NOT TARGET adios2::fortran_mpi OR NOT TARGET adios2::fortran)
    set(no_adios "no ADIOS2 2.11 or later with Fortran and MPI was found; -Dadios2_DIR= names one")
  else()
    # Module files depend on the compiler.
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/try_adios.f90
      "program try_adios\n"
      "   use mpi_f08, only: MPI_COMM_WORLD, MPI_Init\n"
      "   use adios2, only: adios2_adios, adios2_init, adios2_mode_readRandomAccess\n"
      "   type(adios2_adios) :: adios\n"
      "   integer :: ierr\n"
      "   call MPI_Init(ierr)\n"
      "   call adios2_init(adios, MPI_COMM_WORLD%MPI_VAL, ierr)\n"
      "   if (ierr /= 0) print *, adios2_mode_readRandomAccess\n"
      "end program try_adios\n")
    try_compile(adios_compiles ${CMAKE_CURRENT_BINARY_DIR}/try_adios
      ${CMAKE_CURRENT_BINARY_DIR}/try_adios.f90
      LINK_LIBRARIES adios2::fortran_mpi adios2::fortran MPI::MPI_Fortran
      COPY_FILE ${CMAKE_CURRENT_BINARY_DIR}/adios_probe)
    if(NOT adios_compiles)
      set(no_adios "a program with the ADIOS2 in ${adios2_DIR} does not compile")
    else()
      # A program with two MPI libraries links without an error, and then crashes.
      benchio_mpi_libraries_of(${CMAKE_CURRENT_BINARY_DIR}/adios_probe adios_mpi)
      list(LENGTH adios_mpi count)
      if(count GREATER 1)
        list(JOIN adios_mpi " and " adios_mpi)
        set(no_adios "the ADIOS2 in ${adios2_DIR} was built with another MPI library: "
          "a program would load ${adios_mpi}")
        list(JOIN no_adios "" no_adios)
      endif()
    endif()
  endif()
  if(NOT no_adios)
    set(with_adios ON)
    message(STATUS "The layer adios is compiled with ADIOS2 ${adios2_VERSION}: ${adios2_DIR}")
  elseif(BENCHIO_ADIOS STREQUAL "ON")
    message(FATAL_ERROR "The layer adios cannot be compiled: ${no_adios}")
  else()
    message(STATUS "ADIOS2: none that can be used: ${no_adios}")
  endif()
endif()

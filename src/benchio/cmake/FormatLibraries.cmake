# Finds the parallel I/O libraries that some layers need.
#
#   benchio_find_library(NAME TITLE FLAGS...)
#
# Each of FLAGS is a command line's part that might do to compile and link with the library;
# the first with which cmake/NAME_probe.f90 can be linked is taken. Makes the target
# benchio_NAME and sets BENCHIO_WITH_NAME, as the option BENCHIO_NAME says: AUTO, ON or OFF.

include_guard()

# What a program prints, as a list of words; nothing when there is no such program.
function(benchio_words_of result program)
  unset(path)
  find_program(path ${program} NO_CACHE)
  set(words "")
  if(path)
    execute_process(COMMAND ${path} ${ARGN}
      OUTPUT_VARIABLE said RESULT_VARIABLE status ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(status EQUAL 0)
      separate_arguments(words UNIX_COMMAND "${said}")
    endif()
  endif()
  list(JOIN words " " words)
  set(${result} "${words}" PARENT_SCOPE)
endfunction()

# Where CMake's own search finds a library, as flags. The root is that of the variable or of
# the environment, when there is one.
function(benchio_flags_of_root result name)
  unset(library)
  list(POP_FRONT ARGN first)
  find_library(library ${first} NO_CACHE
    HINTS ${${name}_ROOT} ENV ${name}_ROOT ENV ${name}_DIR PATH_SUFFIXES lib lib64)
  set(flags "")
  if(library)
    cmake_path(GET library PARENT_PATH folder)
    cmake_path(GET folder PARENT_PATH root)
    set(flags "-I${root}/include -L${folder} -l${first}")
    foreach(other IN LISTS ARGN)
      string(APPEND flags " -l${other}")
    endforeach()
  endif()
  set(${result} "${flags}" PARENT_SCOPE)
endfunction()

# Takes flags apart. A library is named by its full path where its folder is given, so that the
# program finds it when it runs, and the shared one is preferred: netCDF brings HDF5 along, and
# there must not be two of it.
function(benchio_parse_flags flags includes_result libraries_result)
  separate_arguments(words UNIX_COMMAND "${flags}")
  set(includes "")
  set(folders "")
  set(libraries "")
  foreach(word IN LISTS words)
    if(word MATCHES "^-L(.+)")
      list(APPEND folders ${CMAKE_MATCH_1})
    endif()
  endforeach()
  foreach(word IN LISTS words)
    unset(path)
    if(word MATCHES "^-I(.+)")
      if(IS_DIRECTORY ${CMAKE_MATCH_1})
        list(APPEND includes ${CMAKE_MATCH_1})
      endif()
    elseif(word MATCHES "^(.*)/lib([^/]+)\\.a$")
      find_library(path ${CMAKE_MATCH_2} HINTS ${CMAKE_MATCH_1} NO_CACHE NO_DEFAULT_PATH)
      list(APPEND libraries ${path})
    elseif(word MATCHES "^-l(.+)")
      find_library(path ${CMAKE_MATCH_1} HINTS ${folders} NO_CACHE NO_DEFAULT_PATH)
      if(path)
        list(APPEND libraries ${path})
      else()
        list(APPEND libraries ${word})
      endif()
    endif()
  endforeach()
  set(${includes_result} "${includes}" PARENT_SCOPE)
  set(${libraries_result} "${libraries}" PARENT_SCOPE)
endfunction()

# The MPI libraries that a program would load: each library that defines MPI_Init.
function(benchio_mpi_libraries_of program result)
  set(found "")
  find_program(ldd ldd NO_CACHE)
  if(ldd AND CMAKE_NM)
    execute_process(COMMAND ${ldd} ${program} OUTPUT_VARIABLE said ERROR_QUIET)
    string(REGEX MATCHALL "=> [^ \n]*mpi[^ \n]*" lines "${said}")
    foreach(line IN LISTS lines)
      string(SUBSTRING "${line}" 3 -1 library)
      execute_process(COMMAND ${CMAKE_NM} -D --defined-only ${library}
        OUTPUT_VARIABLE symbols ERROR_QUIET)
      if(symbols MATCHES " [TW] MPI_Init[@\n]")
        file(REAL_PATH ${library} library)
        list(APPEND found ${library})
      endif()
    endforeach()
    list(REMOVE_DUPLICATES found)
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

function(benchio_find_library name title)
  set(BENCHIO_${name} AUTO CACHE STRING "Compile the layers of ${title}: AUTO, ON or OFF")
  set_property(CACHE BENCHIO_${name} PROPERTY STRINGS AUTO ON OFF)
  set(BENCHIO_WITH_${name} FALSE PARENT_SCOPE)
  if(NOT BENCHIO_${name})
    message(STATUS "${title}: not wanted")
    return()
  endif()

  string(TOLOWER ${name} lower)
  set(probe ${CMAKE_CURRENT_BINARY_DIR}/${lower}_probe)
  set(reasons "")
  set(tried "")
  # The compiler may know where the library is: an HPE Cray wrapper does, and h5pfc.
  foreach(flags IN ITEMS "" LISTS ARGN)
    benchio_parse_flags("${flags}" includes libraries)
    list(JOIN libraries " " shown)
    if("--${shown}" IN_LIST tried)
      continue()
    endif()
    list(APPEND tried "--${shown}")
    try_compile(linked ${CMAKE_CURRENT_BINARY_DIR}/${lower}_probe.build
      ${CMAKE_CURRENT_SOURCE_DIR}/cmake/${lower}_probe.f90
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${includes}"
      LINK_LIBRARIES ${libraries} MPI::MPI_Fortran
      OUTPUT_VARIABLE said
      COPY_FILE ${probe})
    if(linked)
      benchio_mpi_libraries_of(${probe} found)
      list(LENGTH found count)
      if(count GREATER 1)
        list(JOIN found " and " found)
        string(APPEND reasons "\n  ${shown} was built with another MPI library: "
          "it would load ${found}")
        continue()
      endif()
      add_library(benchio_${lower} INTERFACE)
      target_include_directories(benchio_${lower} SYSTEM INTERFACE ${includes})
      target_link_libraries(benchio_${lower} INTERFACE ${libraries})
      set(BENCHIO_WITH_${name} TRUE PARENT_SCOPE)
      if(shown STREQUAL "")
        set(shown "as the compiler finds it")
      endif()
      message(STATUS "${title}: ${shown}")
      return()
    endif()
    if(NOT shown STREQUAL "")
      string(REGEX MATCH "[^\n]*(Error|error|undefined)[^\n]*" first "${said}")
      string(APPEND reasons "\n  ${shown} cannot be linked: ${first}")
    endif()
  endforeach()

  if(reasons STREQUAL "")
    set(reasons "\n  it was not found; CMAKE_PREFIX_PATH or ${name}_ROOT can say where it is")
  endif()
  if(NOT BENCHIO_${name} STREQUAL "AUTO")
    message(FATAL_ERROR "BENCHIO_${name} is ${BENCHIO_${name}}, and ${title} cannot be used:"
      "${reasons}")
  endif()
  message(STATUS "${title}: none that can be used${reasons}")
endfunction()

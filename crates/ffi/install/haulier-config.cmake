# find_package(haulier) makes two targets: haulier::haulier is the shared library, haulier::static the other.
# It moves with its directory.
get_filename_component(haulier_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET haulier::haulier)
  find_package(Threads REQUIRED)

  add_library(haulier::haulier SHARED IMPORTED)
  set_target_properties(haulier::haulier PROPERTIES
    IMPORTED_LOCATION "${haulier_prefix}/lib/libhaulier.so.@ABI@"
    IMPORTED_SONAME "libhaulier.so.@ABI@"
    INTERFACE_INCLUDE_DIRECTORIES "${haulier_prefix}/include")

  add_library(haulier::static STATIC IMPORTED)
  set_target_properties(haulier::static PROPERTIES
    IMPORTED_LOCATION "${haulier_prefix}/lib/libhaulier.a"
    INTERFACE_INCLUDE_DIRECTORIES "${haulier_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()

set(haulier_FOUND TRUE)

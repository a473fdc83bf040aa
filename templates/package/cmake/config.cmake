# find_package(@NAME@): the model @NAME@ of burncc as the library @NAME@::@NAME@.
include("${CMAKE_CURRENT_LIST_DIR}/@NAME@-targets.cmake")

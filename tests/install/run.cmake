# Installs the build into a folder of its own, builds the user's project against that, and runs it.
#   cmake -DBUILD=... -DSOURCE=... -DWORK=... -DCXX=... -DCXX_FLAGS=... -DTYPE=... -P run.cmake

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${result}:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
step(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DCMAKE_BUILD_TYPE=${TYPE})
step(${CMAKE_COMMAND} --build ${WORK}/build)
step(${WORK}/build/kernels_only)
step(${WORK}/build/all_of_it ${WORK}/model)

// Runs kernels that were built with cuda_shim.h: blocks one after another, the threads of a block
// as threads of the machine.
#include "cuda_shim.h"

#include <barrier>
#include <memory>
#include <thread>
#include <vector>

__thread ShimIndex threadIdx;
ShimIndex blockIdx, blockDim, gridDim;
unsigned char shim_lanes[1024][16];

static std::unique_ptr<std::barrier<>> block_barrier;

void __syncthreads() {
  if (block_barrier) block_barrier->arrive_and_wait();
}

extern "C" void shim_launch(void (*kernel)(void**), void** arguments, unsigned grid,
                            unsigned block_x, unsigned block_y) {
  gridDim = {grid, 1, 1};
  blockDim = {block_x, block_y, 1};
  const unsigned threads = block_x * block_y;
  auto run = [=](unsigned t) {
    threadIdx = {t % block_x, t / block_x, 0};
    kernel(arguments);
  };
  for (unsigned b = 0; b < grid; ++b) {
    blockIdx = {b, 0, 0};
    if (threads == 1) {
      block_barrier.reset();
      run(0);
      continue;
    }
    block_barrier = std::make_unique<std::barrier<>>(threads);
    std::vector<std::jthread> pool;
    for (unsigned t = 0; t < threads; ++t) pool.emplace_back(run, t);
  }
}

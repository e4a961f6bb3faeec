// Runs kernels that were built with cuda_shim.h: blocks one after another, the threads of a block
// in turns, each up to where it waits for the others.
#include "cuda_shim.h"

#include <ucontext.h>

#include <memory>
#include <vector>

ShimIndex threadIdx, blockIdx, blockDim, gridDim;
unsigned char shim_lanes[1024][16];
alignas(16) unsigned char gc_tile[256 << 10];

namespace {

constexpr size_t kStack = 256 << 10;

struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStack]};
  bool done = false;
};

ucontext_t launcher;
Thread* running = nullptr;
void (*kernel_of)(void**);
void** arguments_of;

void run_kernel() {
  kernel_of(arguments_of);
  running->done = true;
}

/// False where some threads end while others wait for them.
bool run_block(std::vector<Thread>& threads) {
  for (Thread& t : threads) {
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = t.stack.get();
    t.context.uc_stack.ss_size = kStack;
    t.context.uc_link = &launcher;
    t.done = false;
    makecontext(&t.context, run_kernel, 0);
  }
  for (size_t done = 0; done < threads.size();) {
    if (done > 0) return false;
    for (size_t t = 0; t < threads.size(); ++t) {
      running = &threads[t];
      threadIdx = {static_cast<unsigned>(t) % blockDim.x, static_cast<unsigned>(t) / blockDim.x, 0};
      swapcontext(&launcher, &running->context);
      done += running->done;
    }
  }
  return true;
}

}  // namespace

void __syncthreads() {
  if (running) swapcontext(&running->context, &launcher);
}

extern "C" int shim_launch(void (*kernel)(void**), void** arguments, unsigned grid,
                           unsigned block_x, unsigned block_y) {
  gridDim = {grid, 1, 1};
  blockDim = {block_x, block_y, 1};
  kernel_of = kernel, arguments_of = arguments;
  std::vector<Thread> threads(block_x * block_y > 1 ? block_x * block_y : 0);
  for (unsigned b = 0; b < grid; ++b) {
    blockIdx = {b, 0, 0};
    threadIdx = {0, 0, 0};
    std::memset(gc_tile, 0xFF, sizeof gc_tile);
    if (threads.empty())
      kernel(arguments);
    else if (!run_block(threads))
      return 1;
    running = nullptr;
  }
  return 0;
}

// Structured ops on whole tensors, a file a family.
#pragma once

#include "plan/plan.h"

namespace gradcell::cpu {

/// `inputs` and `outputs` are dense and row-major, as the call's descriptions say: its result, then
/// what it has more. `constants`: the run's. Throws Index for an index out of range.
void run_call(const Call& call, const void* const* inputs, void* const* outputs,
              const uint64_t* constants);

// One for each form that can be a call.
void fill(const Call& c, void* out, uint64_t bits);
void range(const Call& c, void* out);
void random_uniform(const Call& c, const void* state, void* out);
void convert(const Call& c, const void* in, void* out);
void logical(const Call& c, const void* const* in, void* out);
void move(const Call& c, const void* const* in, void* out);
void reduce(const Call& c, const void* in, void* out);
void extremum(const Call& c, const void* in, void* out);
void scan(const Call& c, const void* in, void* out);
void fourier(const Call& c, const void* in, void* out);
void take(const Call& c, const void* const* in, void* out);
void scatter(const Call& c, const void* const* in, void* out);
void last_index(const Call& c, const void* const* in, void* out);
void convolve(const Call& c, const void* const* in, void* out);
void attend(const Call& c, const void* const* in, void* const* out);
void window(const Call& c, const void* in, void* out);
void take_along(const Call& c, const void* const* in, void* out);
void put_along(const Call& c, const void* const* in, void* out);
void sample(const Call& c, const void* const* in, void* out);
void routine(const Call& c, const void* const* in, void* out);
void sum_of_products(const Call& c, const void* const* in, void* out);

}  // namespace gradcell::cpu

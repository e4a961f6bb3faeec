// Routines, for Form::Routine and forms for which a GPU has more than them: what each gets is a
// call whose inputs and result are dense, with all problems of the batch. A file a family; a
// routine is a row of its table.
#pragma once

#include <algorithm>
#include <span>

#include "base/thread_pool.h"
#include "plan/plan.h"

namespace gradcell::cpu {

struct RoutineRow {
  Op op;
  void (*run)(const Call& c, const void* const* in, void* out);
};

std::span<const RoutineRow> factorisations();
std::span<const RoutineRow> orders();
std::span<const RoutineRow> searches();
std::span<const RoutineRow> functions_of_integers();

/// f(i) for each of so many problems, which take so many operations each: on all threads if that
/// is worth it.
template <class F>
void each_problem(int64_t count, double operations, F f) {
  constexpr double kWorth = 1e5;
  const auto tasks = narrow<int>(std::min<int64_t>(count, 1024));
  parallel_if(count > 1 && static_cast<double>(count) * operations > kWorth, tasks,
              [&](int task, int) {
                for (int64_t i = count * task / tasks; i < count * (task + 1) / tasks; ++i) f(i);
              });
}

}  // namespace gradcell::cpu

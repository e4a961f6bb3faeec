// Views and writes. A tensor that is a view knows its base and the movements that lead to it; a
// write to it replaces those elements of its base, and whoever reads a view of that base afterwards
// sees them. All other tensors are copies (which share an array until one of them is written to).
//
// In a trace a write is functional: the base becomes another node. Outside, it changes the base's
// array in place where nobody else refers to it.
#pragma once

#include "runtime/trace.h"

namespace gradcell {

/// x by way of the steps.
NodeId replay(Graph& g, const std::vector<Step>& steps, NodeId x);
/// The steps that lead from one node to another that is made of it.
std::vector<Step> steps_between(const Graph& g, NodeId from, NodeId to);

/// Whether an array's elements are in the host's memory alone, where they can be read and written.
bool on_host(const Array& a);

/// Whether a view has all of `count` elements in order.
bool is_whole(const View& v, int64_t count);
/// Whether a plan can read a view where it lies about as fast as a copy of it: there are many
/// elements, in long runs, side by side or one again and again.
bool read_in_place(const View& v);
/// The elements of a view; the base's own array if they are all of it in order.
Array read(const Array& base, const Window& window);

/// A view of x by way of steps, which lies as `layout` says; none: as the steps lay it. If no
/// strides say where its elements are, a copy.
TensorPtr view(const TensorPtr& x, std::vector<Step> steps, std::optional<View> layout = {});
/// A tensor with the same elements: a write to one is none to the other.
TensorPtr copy(const TensorPtr& x);
/// What a function hands out of its trace: what is a view of the function's own alone, as a tensor
/// that does not keep that alive; with `by_value` nothing that shares elements with anything.
std::vector<TensorPtr> settled(const std::vector<TensorPtr>& results, bool by_value);

/// Gives y's elements those of `value`, cast and broadcast. Throws Value if elements of y share
/// places in its base, or the shapes do not fit.
void write(const TensorPtr& y, const TensorPtr& value);

}  // namespace gradcell

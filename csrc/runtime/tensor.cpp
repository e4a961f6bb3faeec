// Tensor: what it holds, and how a view's elements come to be those of its base.
#include "runtime/views.h"

namespace gradcell {

Tensor::Tensor(Array array) : array_(std::move(array)) {
  if (const Trace* t = current_trace()) born_ = t->serial;
}

Tensor::Tensor(const TracePtr& trace, NodeId node)
    : trace_(trace), node_(node), born_(trace->serial) {
  link();
}

Tensor::Tensor(DType dtype, Window window)
    : array_{dtype, window.layout.dims, nullptr},
      window_(std::make_unique<Window>(std::move(window))) {}

Tensor::Tensor(const TracePtr& trace, NodeId node, Window window) : Tensor(trace, node) {
  window.seen = window.base->version();
  window_ = std::make_unique<Window>(std::move(window));
}

Tensor::~Tensor() {
  if (trace_) unlink();
}

void Tensor::link() {
  next_ = trace_->tensors_;
  if (next_) next_->previous_ = this;
  trace_->tensors_ = this;
  const NodeId node = std::exchange(node_, kNoNode);
  trace_->refer(node_, node);
}

void Tensor::unlink() {
  if (previous_)
    previous_->next_ = next_;
  else
    trace_->tensors_ = next_;
  if (next_) next_->previous_ = previous_;
  previous_ = next_ = nullptr;
  trace_->refer(node_, kNoNode);
}

DType Tensor::dtype() const {
  return trace_ ? trace_->graph.dtype(node_) : variable_ ? variable_->dtype() : array_.dtype;
}

const Dims& Tensor::dims() const {
  return trace_ ? trace_->graph.dims(node_) : variable_ ? variable_->dims() : array_.dims;
}

bool Tensor::fresh() const {
  const Tensor& base = *window_->base;
  return array_.storage && window_->seen == base.version() && !base.exposed();
}

Array Tensor::value() const {
  if (trace_) return trace_->value(in(*trace_));
  if (!window_ && !variable_) return array_;
  Trace* t = current_trace();
  if (window_) {
    const Tensor& base = *window_->base;
    if (t && (base.variable_ || base.trace_)) return t->value(in(*t));
    if (!fresh()) {
      const uint64_t seen = base.version();  // the elements may be newer, never older
      array_ = read(base.value(), *window_);
      window_->seen = seen;
    }
    return array_;
  }
  // Inside a trace a variable stands for what has been assigned to it so far.
  return t ? t->value(t->lift(variable_)) : variable_->value();
}

NodeId Tensor::in(Trace& trace) const {
  if (trace_) {
    require(!trace_->ended_, ErrorKind::Value, trace_->ended_);
    require(
        trace_.get() == &trace, ErrorKind::Runtime,
        "a tensor of one function being differentiated is used in another thread's, or after its "
        "function failed");
    if (window_ && window_->seen != window_->base->version()) {
      trace.refer(node_, replay(trace.graph, window_->steps, window_->base->in(trace)));
      window_->seen = window_->base->version();
    }
    return node_;
  }
  const bool current = &trace == current_trace();
  if (window_) {
    const Tensor& base = *window_->base;
    // A view of what the trace may change is a part of it.
    if (current && (base.variable_ || base.trace_))
      return replay(trace.graph, window_->steps, base.in(trace));
    base.captured_ |= current;
    // What is read once need not be copied.
    if (!current && !fresh() && window_->lent != base.version() && read_in_place(window_->layout)) {
      window_->lent = base.version();
      return replay(trace.graph, window_->steps, trace.lift(base.value()));
    }
    return trace.lift(value());
  }
  if (variable_) return trace.lift(variable_);
  captured_ |= current;
  return trace.lift(array_);
}

void Tensor::become(Array array) {
  if (variable_) return variable_->set(array);
  require(!trace_, ErrorKind::Runtime, "a tensor of a function that failed is written to");
  array_ = std::move(array);
  captured_ = false;
  ++version_;
}

void Tensor::become(Trace& trace, NodeId node) {
  if (variable_) return trace.assign(variable_, node);
  if (!trace_) {  // (array_ stays: what it is again if the function fails)
    // What the function does to the world outside of it, it has to do at every call.
    if (born_ != trace.serial) trace.mark_unrepeatable();
    trace_ = trace.shared_from_this();
    link();
  }
  trace.refer(node_, node);
  captured_ = false;
  ++version_;
}

void Tensor::overwrite(FunctionRef<void(const Array&)> f) {
  if (variable_) {
    variable_->overwrite(f);
  } else {
    if (array_.storage.use_count() > 1 || array_.storage->exposed()) array_ = duplicate(array_);
    f(array_);
  }
  captured_ = false;
  ++version_;
}

Array Tensor::shared_array() {
  if (trace_ || ((window_ || variable_) && current_trace())) return value();
  if (window_) {
    if (is_whole(window_->layout, element_count(root().dims()))) root().shared_array();
    return value();
  }
  if (variable_) return variable_->expose();
  const Storage& held = *array_.storage;
  if (!held.exposed() && held.on_host() && !held.has_device()) {
    if (array_.storage.use_count() > 1) array_ = duplicate(array_);
    array_.storage->expose();
  }
  return array_;
}

}  // namespace gradcell

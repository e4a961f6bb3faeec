// Dispatcher: the one place where it is decided how a function runs. In a trace it is a part of
// that; outside of one a compiled form of it runs, without entering Python, when the arguments look
// as they did before; otherwise it is traced, and a form of it may be kept. For each of these it
// calls another Python function:
//   inside  in a trace (a string: the method of that name of the first argument);
//   once    traced, and nothing is kept;
//   first   traced, and kept: always, or if there is a function `once` too, in GRAPH_MODE;
//   again   traced, and kept, for arguments that come a second time, in a mode in which they are
//           not kept at first: so nothing is kept of what comes once.
// So jit has inside and first; a transform, or a cell, also once; an op has inside, once and again;
// a layer whose calls do no more than compute has all four.
//
// An entry's signature is flat: each argument is a plain tensor (dtype and shape) or a number or
// string, NumPy's and those of subclasses too (type and value, to the bit), or something that
// cannot change and is known by itself: None, a member of an enum, a dtype. Everything else is left
// to the Python side, which has signatures of its own. The entries used longest ago are forgotten.
//
// Tuples, lists and slices count as what they hold. An op's arguments may have keywords; where
// they are views it is traced, and so reads them where they lie. A cell's or transform's has an
// owner, the first argument, which is no part of a signature.
//
// Where no entry is found, arrays of other libraries among the arguments become tensors first.
#include "bind/bind.h"
#include "runtime/plan_cache.h"

#include <structmember.h>

#include <bit>
#include <cstddef>
#include <list>
#include <string_view>
#include <unordered_map>

namespace gradcell::bind {

namespace {

/// What compiled functions depend on and arguments do not show: the settings, and what Python
/// holds. What can be set back (an attribute to a former value) changes the sums, which then are
/// what they were; any other change begins an epoch, and forms of earlier ones never run again.
struct Structure {
  uint64_t epoch = 0, sum[2] = {0, 0};
  uint64_t settings = 0;  ///< their number
  bool operator==(const Structure&) const = default;
};
Structure g_structure;  ///< but for the settings, which are taken where it is read

Structure structure_now() {
  Structure now = g_structure;
  now.settings = settings().number;
  return now;
}

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 32);
}

void add_to_structure(std::string_view setting, bool take_away) {
  uint64_t a = 0x243F6A8885A308D3ull, b = 0x13198A2E03707344ull;
  for (unsigned char c : setting) a = mix(a, c), b = mix(b, c ^ (a << 17));
  g_structure.sum[0] += take_away ? -a : a;
  g_structure.sum[1] += take_away ? -b : b;
}

struct Argument {
  bool tensor = false;
  DType dtype = DType::Float32;
  Dims dims;
  py::object object;       ///< what is no plain tensor: of a sequence its type, its items follow
  Py_ssize_t length = -1;  ///< of a sequence
};

struct Entry {
  Structure structure;
  uint64_t hash = 0;
  std::vector<Argument> arguments;
  py::object names;  ///< of the last arguments, a tuple; null: none
  bool own = false;  ///< of an op: no argument is a view
  std::shared_ptr<Compiled> compiled;
  py::object fill;     ///< makes the result of a list of tensors; None: a single tensor
  bool tuple = false;  ///< the result is a flat tuple
};
/// Shared by who runs it: a call that comes in between may drop it.
using EntryPtr = std::shared_ptr<const Entry>;

constexpr size_t kMostArguments = 32;
PyTypeObject* tensor_type() {
  static PyTypeObject* type = reinterpret_cast<PyTypeObject*>(py::type::of<Tensor>().ptr());
  return type;
}

/// The C++ tensor inside an exact Tensor object, without pybind11's generic casting.
Tensor* tensor_in(PyObject* o) {
  if (Py_TYPE(o) != tensor_type()) return nullptr;
  return reinterpret_cast<py::detail::instance*>(o)->get_value_and_holder().value_ptr<Tensor>();
}

/// The Python object of a tensor that has none yet: what py::cast makes, without its searches for
/// the type and for an object that there is.
py::object new_object(const std::shared_ptr<Tensor>& tensor) {
  static const py::detail::type_info* const info = py::detail::get_type_info(tensor_type());
  auto object = py::reinterpret_steal<py::object>(py::detail::make_new_instance(info->type));
  auto* instance = reinterpret_cast<py::detail::instance*>(object.ptr());
  instance->get_value_and_holder().value_ptr() = tensor.get();
  instance->owned = true;
  info->init_instance(instance, &tensor);
  return object;
}

bool is_numpy_dtype(PyObject* o) {
  static PyTypeObject* const dtype = type_of("numpy", "dtype");
  return PyType_IsSubtype(Py_TYPE(o), dtype);
}

/// The bits of a NumPy scalar; empty where it does not show them.
std::string bits_of(PyObject* o) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(o, &buffer, PyBUF_SIMPLE) != 0) {
    PyErr_Clear();
    return {};
  }
  std::string bits(static_cast<const char*>(buffer.buf), static_cast<size_t>(buffer.len));
  PyBuffer_Release(&buffer);
  return bits;
}

bool same_bits(double a, double b) {  // -0.0 is not 0.0, NaN is NaN
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

/// By value, which their types' own functions tell: a subclass may have others.
bool same_object(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_Check(a)) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyLong_Check(a))
    return py::reinterpret_steal<py::object>(PyLong_Type.tp_richcompare(a, b, Py_EQ)).ptr() ==
           Py_True;
  if (PyUnicode_Check(a)) return PyUnicode_Compare(a, b) == 0;
  if (PyComplex_Check(a)) {
    const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return same_bits(x.real, y.real) && same_bits(x.imag, y.imag);
  }
  if (is_numpy_dtype(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  return is_scalar(a) && !bits_of(a).empty() && bits_of(a) == bits_of(b);
}

/// Whether it is a tuple or list, of a subclass too if that has nothing of its own.
bool is_sequence(PyObject* o) {
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) return true;
  const PyTypeObject* type = Py_TYPE(o);
  if (type->tp_dictoffset != 0 || (!PyTuple_Check(o) && !PyList_Check(o))) return false;
  const PyTypeObject& plain = PyTuple_Check(o) ? PyTuple_Type : PyList_Type;
  return type->tp_iter == plain.tp_iter && type->tp_basicsize == plain.tp_basicsize &&
         type->tp_as_sequence->sq_item == plain.tp_as_sequence->sq_item;
}

/// An argument of a call, or an item of one.
struct Given {
  PyObject* object;
  Tensor* tensor;  ///< in it, if it is one
  Py_ssize_t length;
};

/// Whether it cannot change, and is known by itself or by its value.
bool is_fixed(PyObject* o) {
  static PyTypeObject* const members = type_of("enum", "Enum");
  static PyTypeObject* const dtypes =
      reinterpret_cast<PyTypeObject*>(py::type::of<DTypeObject>().ptr());
  PyTypeObject* const type = Py_TYPE(o);
  if (o == Py_None || o == Py_Ellipsis || PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o))
    return true;
  if (type == dtypes || PyComplex_Check(o) || PyType_IsSubtype(type, members)) return true;
  if (is_numpy_dtype(o) || is_scalar(o)) return true;
  return PyType_Check(o) &&
         !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(o), Py_TPFLAGS_HEAPTYPE);
}

/// What turns arrays of other libraries into tensors, door(dispatcher, owner, argument), in Python;
/// and the types of the objects that have parts. (Never freed: Python may be gone.)
struct Door {
  py::object call;
  py::dict kinds;
};
Door& door() {
  static auto* const made = new Door;
  return *made;
}

/// Whether there may be an array of another library in an argument, or it is nested so deeply that
/// only Python knows. NumPy's scalars are numbers.
bool may_hold_arrays(PyObject* o, int depth = 0) {
  if (PyObject_TypeCheck(o, tensor_type()) || is_fixed(o) || PyFunction_Check(o) || PyType_Check(o))
    return false;
  if (depth == 100) return true;
  auto among = [depth](const auto& items) {
    return std::ranges::any_of(
        items, [depth](py::handle x) { return may_hold_arrays(x.ptr(), depth + 1); });
  };
  if (PyTuple_Check(o)) return among(py::reinterpret_borrow<py::tuple>(o));
  if (PyList_Check(o)) return among(py::reinterpret_borrow<py::list>(o));
  if (PyDict_Check(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (may_hold_arrays(value, depth + 1)) return true;
    return false;
  }
  if (is_array(o)) return true;
  static PyObject* const fields = PyUnicode_InternFromString("__dataclass_fields__");
  const py::handle type = reinterpret_cast<PyObject*>(Py_TYPE(o));
  return py::hasattr(type, fields) || door().kinds.contains(type);
}

/// The arguments of a call, with tensors where arrays of other libraries are.
class Tensors {
 public:
  Tensors(py::handle dispatcher, PyObject* const* args, size_t n, bool owned) : args_(args) {
    for (size_t i = owned; i < n; ++i) {
      if (!may_hold_arrays(args[i])) continue;
      const py::handle owner = owned ? args[0] : Py_None;
      py::object now = calling_python(
          [&]() -> py::object { return door().call(dispatcher, owner, py::handle(args[i])); });
      if (now.ptr() == args[i]) continue;
      if (all_.empty()) all_.assign(args, args + n);
      all_[i] = now.ptr();
      made_.push_back(std::move(now));
    }
    if (!all_.empty()) args_ = all_.data();
  }
  bool changed() const { return !made_.empty(); }
  PyObject* const* get() const { return args_; }

 private:
  PyObject* const* args_;
  std::vector<PyObject*> all_;
  std::vector<py::object> made_;
};

/// The arguments of a call, in order. flat() is false where there are too many.
class Flat {
 public:
  /// Sequences and slices are what they hold.
  Flat(PyObject* const* args, size_t n) {
    for (size_t i = 0; i < n; ++i) add(args[i]);
  }
  void add(PyObject* o) {
    if (size_ == kMostArguments) return void(fits_ = false);
    const bool slice = PySlice_Check(o);
    if (!slice && !is_sequence(o)) {
      all_[size_++] = {o, tensor_in(o), -1};
      return;
    }
    const Py_ssize_t length = slice ? 3 : Py_SIZE(o);
    all_[size_++] = {reinterpret_cast<PyObject*>(Py_TYPE(o)), nullptr, length};
    if (slice) {
      const auto* s = reinterpret_cast<PySliceObject*>(o);
      for (PyObject* part : {s->start, s->stop, s->step}) add(part);
      return;
    }
    const bool tuple = PyTuple_Check(o);
    for (Py_ssize_t i = 0; i < length && fits_; ++i)
      add(tuple ? PyTuple_GET_ITEM(o, i) : PyList_GET_ITEM(o, i));
  }
  bool fits() const { return fits_; }
  size_t size() const { return size_; }
  const Given& operator[](size_t i) const { return all_[i]; }
  const Given* begin() const { return all_; }
  const Given* end() const { return all_ + size_; }

 private:
  Given all_[kMostArguments];
  size_t size_ = 0;
  bool fits_ = true;
};

/// Of its type too: 0 and 0.0 are two arguments.
uint64_t hash_object(PyObject* o) {
  const auto type = reinterpret_cast<uintptr_t>(Py_TYPE(o));
  if (PyFloat_Check(o)) return mix(type, std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(o)));
  if (PyLong_Check(o)) return mix(type, static_cast<uint64_t>(PyLong_Type.tp_hash(o)));
  if (PyUnicode_Check(o)) return mix(type, static_cast<uint64_t>(PyUnicode_Type.tp_hash(o)));
  if (PyComplex_Check(o)) {
    const Py_complex x = PyComplex_AsCComplex(o);
    return mix(mix(type, std::bit_cast<uint64_t>(x.real)), std::bit_cast<uint64_t>(x.imag));
  }
  if (is_numpy_dtype(o)) return mix(type, static_cast<uint64_t>(PyObject_Hash(o)));
  if (is_scalar(o)) return mix(type, std::hash<std::string>()(bits_of(o)));
  return reinterpret_cast<uintptr_t>(o);
}

uint64_t hash_call(const Structure& structure, const Flat& args) {
  uint64_t h = mix(structure.sum[0], args.size() | structure.settings << 8);
  for (const Given& a : args) {
    if (!a.tensor) {
      h = mix(h, a.length < 0 ? hash_object(a.object) : reinterpret_cast<uintptr_t>(a.object));
      if (a.length >= 0) h = mix(h, static_cast<uint64_t>(a.length));
      continue;
    }
    const Dims& dims = a.tensor->dims();
    h = mix(h, static_cast<uint64_t>(a.tensor->dtype()) | dims.size() << 8);
    for (int64_t d : dims) h = mix(h, static_cast<uint64_t>(d));
  }
  return h;
}

/// A tensor whose elements an op may take as they are.
bool is_own(const Tensor& t) { return !t.traced() && !t.hooked() && !t.window(); }

/// Whether an op's form may be kept for such an argument: what cannot change.
bool may_be_kept(const Given& a) {
  if (a.tensor) return is_own(*a.tensor);
  return a.length >= 0 || is_fixed(a.object);
}

/// A function's entries, the latest first.
class Entries {
 public:
  explicit Entries(size_t most) : most_(most) {}

  /// The entry for a call; null: none.
  EntryPtr find(const Flat& args, PyObject* names) {
    if (order_.empty()) return nullptr;
    const Structure now = structure_now();
    if (matches(*order_.front(), now, args, names)) return order_.front();
    auto it = index_.find(hash_call(now, args));
    if (it == index_.end() || !matches(**it->second, now, args, names)) return nullptr;
    order_.splice(order_.begin(), order_, it->second);
    return order_.front();
  }

  /// Whether such a call, which has no entry, has come before, as far as is remembered.
  bool seen(const Flat& args) {
    if (stopped_) return false;
    for (const Given& a : args)
      if (!may_be_kept(a)) return false;
    const uint64_t hash = hash_call(structure_now(), args);
    return std::exchange(seen_[hash % std::size(seen_)], hash) == hash;
  }

  void add(EntryPtr entry) {
    std::list<EntryPtr> dropped;  // when all is in place: their ends may run Python
    if (!order_.empty() && order_.front()->structure.epoch != entry->structure.epoch)
      dropped = take_all();
    if (auto it = index_.find(entry->hash); it != index_.end())
      dropped.splice(dropped.end(), order_, it->second);
    order_.push_front(std::move(entry));
    index_[order_.front()->hash] = order_.begin();
    if (order_.size() > most_) {
      index_.erase(order_.back()->hash);
      dropped.splice(dropped.end(), order_, std::prev(order_.end()));
    }
  }

  /// From now on no call has come before.
  void stop() { stopped_ = true; }

  void clear() { std::list<EntryPtr> dropped = take_all(); }
  size_t size() const { return order_.size(); }

 private:
  static bool matches(const Entry& e, const Structure& now, const Flat& args, PyObject* names) {
    if (e.structure != now || e.arguments.size() != args.size()) return false;
    if (!same_names(e.names.ptr(), names)) return false;
    for (size_t i = 0; i < args.size(); ++i) {
      const Argument& a = e.arguments[i];
      const Tensor* t = args[i].tensor;
      if (a.tensor
              ? !t || t->traced() || t->hooked() || (e.own && t->window()) ||
                    t->dtype() != a.dtype || t->dims() != a.dims
              : t || a.length != args[i].length || !same_object(args[i].object, a.object.ptr()))
        return false;
    }
    return true;
  }

  static bool same_names(PyObject* a, PyObject* b) {
    if (!a || !b) return a == b;
    return a == b || PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  }

  std::list<EntryPtr> take_all() {
    index_.clear();
    return std::exchange(order_, {});
  }

  size_t most_;
  std::list<EntryPtr> order_;
  std::unordered_map<uint64_t, std::list<EntryPtr>::iterator> index_;
  uint64_t seen_[16] = {};
  bool stopped_ = false;
};

bool g_graph_mode = false;

struct Dispatcher {
  PyObject_HEAD vectorcallfunc call;
  PyObject* dict;
  PyObject* weak;
  PyObject *inside, *once, *first, *again;  ///< null: none
  bool owned;
  Entries* entries;

  bool is_op() const { return !first; }
  bool keeps_at_first() const { return first && (!once || g_graph_mode); }
};

PyObject* run(const Entry& e, const Flat& args) {
  Array inline_arrays[8];
  std::vector<Array> many;
  size_t n = e.arguments.size();
  if (n > 8) many.resize(n);
  Array* in = n > 8 ? many.data() : inline_arrays;
  size_t count = 0;
  for (size_t i = 0; i < n; ++i)
    if (e.arguments[i].tensor) in[count++] = args[i].tensor->value();
  std::vector<Array> out = e.compiled->run({in, count});
  if (takes_long(*e.compiled->executable)) answer_signals();
  auto wrap = [](Array& a) { return new_object(std::make_shared<Tensor>(std::move(a))); };
  if (e.fill.is_none() && !e.tuple) return wrap(out[0]).release().ptr();
  if (e.tuple) {
    py::tuple result(out.size());
    for (size_t i = 0; i < out.size(); ++i) result[i] = wrap(out[i]);
    return result.release().ptr();
  }
  py::list tensors_out;
  for (Array& a : out) tensors_out.append(wrap(a));
  return calling_python([&] { return e.fill(tensors_out).release().ptr(); });
}

/// Inside a catch: the exception as Python's. Returns null, as who raises in C does.
PyObject* raised() {
  try {
    throw;
  } catch (py::error_already_set& e) {
    e.restore();
  } catch (...) {
    // The translators know gradcell's errors; they are reached through pybind11.
    try {
      py::detail::try_translate_exceptions();
    } catch (...) {
      PyErr_SetString(PyExc_RuntimeError, "unknown error");
    }
  }
  return nullptr;
}

PyObject* call_inside(PyObject* inside, PyObject* const* args, size_t flags, PyObject* names) {
  if (PyUnicode_Check(inside)) return PyObject_VectorcallMethod(inside, args, flags, names);
  return PyObject_Vectorcall(inside, args, flags, names);
}

/// Whether an op may ask for the numbers of such arguments, which no form has: those of arrays of
/// integers may be axes or a shape.
bool may_be_asked(const Flat& args) {
  return std::ranges::any_of(
      args, [](const Given& a) { return a.tensor && !is_floating(a.tensor->dtype()); });
}

PyObject* dispatch(PyObject* self_object, PyObject* const* given, size_t flags, PyObject* names) {
  auto* self = reinterpret_cast<Dispatcher*>(self_object);
  const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  const auto n = static_cast<size_t>(PyVectorcall_NARGS(flags)) + named;
  const size_t owners = self->owned && n > 0;
  const bool at_first = self->keeps_at_first(), inside = current_trace() != nullptr;
  const bool keeps = !inside && (at_first || self->again) && (!names || self->is_op());
  PyObject* traced = inside ? self->inside : at_first ? self->first : self->once;
  PyObject* const by_name = named ? names : nullptr;
  try {
    const Flat flat(given + owners, keeps ? n - owners : 0);
    if (keeps && flat.fits())
      if (EntryPtr e = self->entries->find(flat, by_name)) return run(*e, flat);
    const Tensors args(self_object, given, n, owners);
    if (keeps && flat.fits()) {
      const Flat now(args.get() + owners, n - owners);
      if (args.changed())
        if (EntryPtr e = self->entries->find(now, by_name)) return run(*e, now);
      const bool asked = args.changed() && self->is_op() && may_be_asked(now);
      if (!at_first && !asked && self->entries->seen(now)) traced = self->again;
    }
    // (Before the first of another list there is no room for one more.)
    if (args.changed()) flags = static_cast<size_t>(PyVectorcall_NARGS(flags));
    return calling_python([&] {
      return inside ? call_inside(traced, args.get(), flags, names)
                    : PyObject_Vectorcall(traced, args.get(), flags, names);
    });
  } catch (...) {
    return raised();
  }
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* named) {
  static const char* const names[] = {"most", "inside", "once", "first", "again", "owned", nullptr};
  PyObject* functions[4] = {};
  Py_ssize_t most = 0;
  int owned = 0;
  if (!PyArg_ParseTupleAndKeywords(args, named, "nO|$OOOp", const_cast<char**>(names), &most,
                                   &functions[0], &functions[1], &functions[2], &functions[3],
                                   &owned))
    return nullptr;
  if (!functions[2] && !(functions[1] && functions[3])) {
    PyErr_SetString(PyExc_TypeError, "Dispatcher: needs first, or once and again");
    return nullptr;
  }
  auto* self = reinterpret_cast<Dispatcher*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->call = dispatch;
  self->dict = PyDict_New();
  self->weak = nullptr;
  for (PyObject* f : functions) Py_XINCREF(f);
  self->inside = functions[0], self->once = functions[1];
  self->first = functions[2], self->again = functions[3];
  self->owned = owned;
  self->entries = new Entries(static_cast<size_t>(most));
  return reinterpret_cast<PyObject*>(self);
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<Dispatcher*>(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(self->dict);
  for (PyObject* f : {self->inside, self->once, self->first, self->again}) Py_VISIT(f);
  return 0;
}

int clear(PyObject* o) {
  auto* self = reinterpret_cast<Dispatcher*>(o);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->inside);
  Py_CLEAR(self->once);
  Py_CLEAR(self->first);
  Py_CLEAR(self->again);
  if (self->entries) self->entries->clear();
  return 0;
}

void destroy(PyObject* o) {
  auto* self = reinterpret_cast<Dispatcher*>(o);
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (self->weak) PyObject_ClearWeakRefs(o);
  clear(o);
  delete self->entries;
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* add_entry(PyObject* o, PyObject* args) {
  auto* self = reinterpret_cast<Dispatcher*>(o);
  PyObject *arguments, *compiled, *fill, *named = nullptr;
  unsigned long long epoch, sum[2], number;
  int tuple;
  if (!PyArg_ParseTuple(args, "(KKKK)O!OOp|O!", &epoch, &sum[0], &sum[1], &number, &PyTuple_Type,
                        &arguments, &compiled, &fill, &tuple, &PyDict_Type, &named))
    return nullptr;
  try {
    auto e = std::make_shared<Entry>();
    e->structure = {epoch, {sum[0], sum[1]}, number};
    e->own = self->is_op();
    Flat flat(&PyTuple_GET_ITEM(arguments, 0), static_cast<size_t>(PyTuple_GET_SIZE(arguments)));
    if (named && PyDict_GET_SIZE(named) > 0) {
      e->names = py::tuple(py::reinterpret_borrow<py::dict>(named).attr("keys")());
      PyObject *key, *value;
      for (Py_ssize_t at = 0; PyDict_Next(named, &at, &key, &value);) flat.add(value);
    }
    if (!flat.fits()) Py_RETURN_FALSE;
    for (const Given& given : flat) {
      const bool parameter = PyObject_TypeCheck(given.object, tensor_type());
      if (!given.tensor && given.length < 0 && !parameter && !is_fixed(given.object))
        Py_RETURN_FALSE;
      Argument a;
      if (const Tensor* t = given.tensor)
        a.tensor = true, a.dtype = t->dtype(), a.dims = t->dims();
      else
        a.object = py::reinterpret_borrow<py::object>(given.object), a.length = given.length;
      e->arguments.push_back(std::move(a));
    }
    e->hash = hash_call(e->structure, flat);
    e->compiled = py::handle(compiled).cast<std::shared_ptr<Compiled>>();
    e->fill = py::reinterpret_borrow<py::object>(fill);
    e->tuple = tuple;
    self->entries->add(std::move(e));
  } catch (...) {
    return raised();
  }
  Py_RETURN_TRUE;
}

PyObject* stop(PyObject* o, PyObject*) {
  reinterpret_cast<Dispatcher*>(o)->entries->stop();
  Py_RETURN_NONE;
}

PyObject* count_entries(PyObject* o, PyObject*) {
  return PyLong_FromSize_t(reinterpret_cast<Dispatcher*>(o)->entries->size());
}

PyMethodDef methods[] = {{"_add", add_entry, METH_VARARGS,
                          "Remembers a compiled form: (structure_version before it was traced, "
                          "arguments, compiled, fill, "
                          "is_tuple, named arguments). False: too many arguments, or one that may "
                          "change."},
                         {"_stop", stop, METH_NOARGS, "No more calls of `again`."},
                         {"_count", count_entries, METH_NOARGS, "How many forms it remembers."},
                         {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Dispatcher, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Dispatcher, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Dispatcher, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(bind_to)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_getset, properties},
                       {0, nullptr}};
PyType_Spec type_spec = {
    "gradcell._core.Dispatcher", sizeof(Dispatcher), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE,
    slots};

}  // namespace

PyObject* bind_to(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, instance);
}

void bump_structure_version() { ++g_structure.epoch; }

void bind_dispatch(py::module_& m) {
  m.add_object("Dispatcher", py::reinterpret_steal<py::object>(PyType_FromSpec(&type_spec)));
  m.def(
      "structure_version",
      [] {
        const Structure now = structure_now();
        return py::make_tuple(now.epoch, now.sum[0], now.sum[1], now.settings);
      },
      "(epoch, two numbers, that of the settings): equal where what compiled functions may depend "
      "on is the same.");
  m.def(
      "may_hold_arrays", [](py::handle x) { return may_hold_arrays(x.ptr()); },
      "Whether there may be an array of another library in a tree; NumPy's scalars are none.");
  m.def(
      "set_door",
      [](py::object call, py::dict kinds) { door() = {std::move(call), std::move(kinds)}; },
      "What makes tensors of the arrays of other libraries in an argument: (dispatcher, owner, "
      "argument); "
      "and a dict with the types of trees.");
  m.def(
      "set_graph_mode", [](bool graph) { g_graph_mode = graph; },
      "Whether functions are compiled when they are called first.");
  m.def("bump_structure_version", &bump_structure_version,
        "Makes compiled functions look again: something that they may depend on has changed.");
  m.def(
      "change_structure",
      [](std::string_view was, std::string_view now) {
        add_to_structure(was, true);
        add_to_structure(now, false);
      },
      py::arg("was"), py::arg("now"),
      "The same for a setting that may return: its name and value, before and after.");
}

}  // namespace gradcell::bind

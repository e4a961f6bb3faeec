#include "runtime/storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace gradcell {
namespace {

TEST(Storage, BlocksAreAlignedAndWritable) {
  for (size_t bytes : {0, 1, 63, 64, 65, 1000, 1 << 20}) {
    auto s = Storage::allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s->data()) % 64, 0u);
    EXPECT_EQ(s->bytes(), bytes);
    std::memset(s->data(), 1, bytes);
  }
}

TEST(Storage, LargeBlocksBeginAtAPageOfTwoMebibytes) {
  constexpr size_t kPage = size_t(2) << 20;
  for (size_t bytes : {2 * kPage, 2 * kPage + 1, 5 * kPage}) {
    auto s = Storage::allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s->data()) % kPage, 0u);
    std::memset(s->data(), 1, bytes);
  }
}

TEST(Storage, AFreedBlockIsUsedAgain) {
  release_cached_memory();
  void* first;
  {
    auto s = Storage::allocate(100000);
    first = s->data();
  }
  EXPECT_EQ(Storage::allocate(100000)->data(), first);
  EXPECT_EQ(Storage::allocate(99990)->data(), first);  // of the same rounded size
}

TEST(Storage, CountsWhatIsInUseAndWhatIsCached) {
  release_cached_memory();
  MemoryInfo before = memory_info();
  EXPECT_EQ(before.cached, 0u);
  {
    auto s = Storage::allocate(1 << 20);
    EXPECT_EQ(memory_info().in_use, before.in_use + (1 << 20));
  }
  EXPECT_EQ(memory_info().in_use, before.in_use);
  EXPECT_EQ(memory_info().cached, size_t(1) << 20);
  release_cached_memory();
  EXPECT_EQ(memory_info().cached, 0u);
}

TEST(Storage, ForeignMemoryIsReleasedOnce) {
  int released = 0, data = 5;
  auto s = Storage::wrap(&data, sizeof data, true, [&] { ++released; });
  auto other = s;
  EXPECT_EQ(s->data(), &data);
  s.reset();
  EXPECT_EQ(released, 0);
  other.reset();
  EXPECT_EQ(released, 1);
}

ErrorKind kind_of(auto make) {
  try {
    make();
  } catch (const Error& e) {
    return e.kind;
  }
  return ErrorKind::Runtime;
}

TEST(Storage, EnormousShapesAreMemoryErrors) {
  EXPECT_EQ(kind_of([] { empty_array(DType::Float32, {int64_t(1) << 40, 1 << 20}); }),
            ErrorKind::Memory);
  EXPECT_EQ(kind_of([] { empty_array(DType::Float64, {int64_t(1) << 60}); }), ErrorKind::Memory);
  EXPECT_EQ(kind_of([] { element_count(Dims{int64_t(1) << 40, int64_t(1) << 40}); }),
            ErrorKind::Memory);
  EXPECT_EQ(element_count(Dims{int64_t(1) << 40, int64_t(1) << 40, 0}), 0);
}

TEST(Storage, ThreadsTakeAndGive) {
  auto work = [] {
    for (int i = 0; i < 2000; ++i) {
      auto a = Storage::allocate(static_cast<size_t>(64 * (i % 7 + 1)));
      std::memset(a->data(), i, a->bytes());
      auto b = Storage::allocate(128);
      static_cast<char*>(b->data())[0] = 1;
    }
  };
  size_t before = memory_info().in_use;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(work);
  for (auto& t : threads) t.join();
  EXPECT_EQ(memory_info().in_use, before);
}

}  // namespace
}  // namespace gradcell

// A device's memory as segments that are divided and joined: no block overlaps another, nothing is
// lost.
#include "cuda/run/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace gradcell::cuda {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr DevicePointer kBase = 0x700000000000;

const auto never = [](EventHandle) { FAIL() << "no event to wait for"; };

TEST(Pool, DividesALargeSegmentAndJoinsItAgain) {
  Pool pool;
  pool.add(kBase, 16 * kMiB);
  EXPECT_EQ(pool.give(kBase), 16 * kMiB);
  const Pool::Piece a = pool.take(4 * kMiB), b = pool.take(4 * kMiB), c = pool.take(8 * kMiB);
  EXPECT_EQ(a.pointer, kBase);
  EXPECT_EQ(b.pointer, kBase + 4 * kMiB);
  EXPECT_EQ(c.pointer, kBase + 8 * kMiB);
  EXPECT_EQ(pool.take(kMiB).pointer, 0u);
  pool.give(a.pointer);
  pool.give(c.pointer);
  EXPECT_EQ(pool.free_bytes(), 12 * kMiB);
  EXPECT_EQ(pool.take(12 * kMiB).pointer, 0u);  // not side by side
  EXPECT_EQ(pool.whole(0), 0u);
  pool.give(b.pointer);
  EXPECT_EQ(pool.whole(0), 16 * kMiB);
  EXPECT_EQ(pool.take(16 * kMiB).pointer, kBase);
}

TEST(Pool, JoinsNoSegmentsOfTheDriver) {
  Pool pool;
  pool.add(kBase, 2 * kMiB), pool.add(kBase + 2 * kMiB, 2 * kMiB);
  pool.give(kBase), pool.give(kBase + 2 * kMiB);
  EXPECT_EQ(pool.take(4 * kMiB).pointer, 0u);
  EXPECT_EQ(pool.without_free(0, never).size(), 2u);
  EXPECT_EQ(pool.free_bytes(), 0u);
}

TEST(Pool, SmallBlocksTakeNoPartOfLargeOnes) {
  Pool pool;
  pool.add(kBase, 64 * kMiB);
  pool.give(kBase);
  EXPECT_EQ(pool.take(512).pointer, 0u);
  pool.add(kBase + 64 * kMiB, 640);
  pool.give(kBase + 64 * kMiB);
  EXPECT_EQ(pool.take(512).bytes, 640u);  // little more than asked for
  EXPECT_EQ(pool.take(64 * kMiB).pointer, kBase);
}

TEST(Pool, WhatIsFreeOnlyLaterStaysWholeUntilThen) {
  Pool pool;
  int event = 0;
  pool.add(kBase, 8 * kMiB);
  pool.give(kBase);
  const Pool::Piece a = pool.take(4 * kMiB), b = pool.take(4 * kMiB);
  pool.give(a.pointer, &event);
  pool.give(b.pointer);
  EXPECT_EQ(pool.take(8 * kMiB).pointer, 0u);
  EXPECT_EQ(pool.take(kMiB).pointer, b.pointer);
  pool.give(b.pointer);
  const Pool::Piece again =
      pool.take(4 * kMiB);  // the one without an event, or that with its event
  EXPECT_EQ(again.until, again.pointer == a.pointer ? &event : nullptr);
  pool.give(again.pointer, again.until);
  int waits = 0;
  const auto all = pool.without_free(0, [&](EventHandle e) { waits += e == &event; });
  EXPECT_EQ(waits, 1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].bytes, 8 * kMiB);
}

TEST(Pool, RandomBlocksNeverOverlap) {
  std::mt19937 random(5);
  Pool pool;
  std::map<DevicePointer, size_t> used;
  DevicePointer next = kBase;
  size_t given = 0;
  for (int k = 0; k < 20000; ++k) {
    if (used.size() > 40 || (random() % 2 && !used.empty())) {
      const auto it = std::next(used.begin(), random() % used.size());
      EXPECT_EQ(pool.give(it->first), it->second);
      used.erase(it);
    } else {
      const size_t bytes = Pool::rounded(size_t{1} << (random() % 26));
      Pool::Piece p = pool.take(bytes);
      if (!p.pointer) {
        p = {next, bytes, nullptr};
        pool.add(next, bytes);
        next += bytes, given += bytes;
      }
      ASSERT_GE(p.bytes, bytes);
      ASSERT_EQ(p.pointer % 256, 0u);
      const auto after = used.lower_bound(p.pointer);
      ASSERT_TRUE(after == used.end() || p.pointer + p.bytes <= after->first);
      ASSERT_TRUE(after == used.begin() ||
                  std::prev(after)->first + std::prev(after)->second <= p.pointer);
      used[p.pointer] = p.bytes;
    }
    size_t held = 0;
    for (auto [p, bytes] : used) held += bytes;
    ASSERT_EQ(held + pool.free_bytes(), given);
    if (k % 1000 == 999)
      for (const Pool::Piece& p : pool.without_free(Pool::kLarge, never)) given -= p.bytes;
  }
  for (auto [p, bytes] : used) pool.give(p);
  for (const Pool::Piece& p : pool.without_free(0, never)) given -= p.bytes;
  EXPECT_EQ(given, 0u);
}

}  // namespace
}  // namespace gradcell::cuda

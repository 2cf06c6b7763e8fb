// Made to show every part of Google Benchmark's JSON that is read.
#include <benchmark/benchmark.h>
#include <numeric>
#include <string>
#include <vector>

template <class T> static void BM_sum(benchmark::State& state) {
  std::vector<T> values(state.range(0), T(1));
  for (auto _ : state) benchmark::DoNotOptimize(std::accumulate(values.begin(), values.end(), T(0)));
  state.SetBytesProcessed(state.iterations() * state.range(0) * sizeof(T));
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["width"] = sizeof(T);
}
BENCHMARK_TEMPLATE(BM_sum, int)->ArgName("n")->Arg(1024)->Arg(65536);
BENCHMARK_TEMPLATE(BM_sum, double)->ArgNames({"n", ""})->Args({1024, 3})->UseRealTime();

static void BM_copy(benchmark::State& state, const std::string& text) {
  for (auto _ : state) benchmark::DoNotOptimize(std::string(text));
  state.SetLabel("by value");
}
BENCHMARK_CAPTURE(BM_copy, short, std::string("abc"))->Unit(benchmark::kMicrosecond);

static void BM_fails(benchmark::State& state) {
  state.SkipWithError("no input");
  for (auto _ : state) {}
}
BENCHMARK(BM_fails);

struct Stack : benchmark::Fixture {};
BENCHMARK_DEFINE_F(Stack, Push)(benchmark::State& state) {
  for (auto _ : state) { std::vector<int> v; v.push_back(1); benchmark::DoNotOptimize(v.data()); }
}
BENCHMARK_REGISTER_F(Stack, Push)->Threads(2);
BENCHMARK_MAIN();

// SPDX-License-Identifier: Apache-2.0
// How well the timing of candidates works, on a GPU: bench_timing [--repeats 20] [--seconds 90] [--device 0].
//
// Thirty computations from about 5 us to 10 ms are measured against themselves, as the replayer measures a candidate
// against its reference (verify/replay/timing.h), with both protocols. Prints a JSON line a computation and protocol,
// then:
//
//   spread    coefficient of variation of the measured ratio over the repeats, median and 95th percentile
//   called    how many ratios of equals count as faster or slower, with the band measured at start
//   sources   the same spread with one thing changed at a time (nothing moved, no flush, flush by writing, ...)
//   known     measured length of kernels that spin for a known time
#include <ATen/ATen.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

#include "base/error.h"
#include "base/files/json.h"
#include "base/log.h"
#include "base/stats.h"
#include "base/text.h"
#include "ext/calibrated_timing/calibrated_timing.h"
#include "verify/execute/judge_slots.h"
#include "verify/replay/guarded_memory.h"
#include "verify/replay/own_kernels.h"
#include "verify/replay/tape.h"
#include "verify/replay/timing.h"

namespace tritonrl {
namespace {

using Tensors = std::vector<at::Tensor>;

struct Computation {
  std::string name;
  std::function<Tensors()> inputs;
  std::function<at::Tensor(const Tensors&)> run;
};

// One side: its inputs and its last result, as a tape holds them.
struct Side {
  Tensors inputs;
  at::Tensor result;
  void move() {
    result = at::Tensor();
    for (at::Tensor& input : inputs) input = input.clone();
  }
};

at::Tensor normal(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) {
  return at::randn(shape, at::TensorOptions(at::kCUDA).dtype(dtype));
}

std::vector<Computation> computations() {
  std::vector<Computation> list;
  auto unary = [&](const char* name, int64_t rows, int64_t columns, at::Tensor (*fn)(const at::Tensor&)) {
    list.push_back({cat(name, " ", rows, "x", columns),
                    [=] {
                      return Tensors{normal({rows, columns})};
                    },
                    [=](const Tensors& in) { return fn(in[0]); }});
  };
  auto relu = [](const at::Tensor& x) { return at::relu(x); };
  auto gelu = [](const at::Tensor& x) { return at::gelu(x); };
  auto softmax = [](const at::Tensor& x) { return at::softmax(x, 1); };
  auto sum = [](const at::Tensor& x) { return at::sum(x, {1}); };
  auto norm = [](const at::Tensor& x) { return at::layer_norm(x, {x.size(1)}); };
  auto three = [](const at::Tensor& x) { return at::tanh(at::sigmoid(x) * x); };  // Three launches.
  auto columns = [](const at::Tensor& x) { return at::amax(x, {0}); };
  auto cumulative = [](const at::Tensor& x) { return at::cumsum(x, 1); };
  unary("relu", 16, 4096, relu);
  unary("softmax", 64, 1024, softmax);
  unary("sum", 256, 1024, sum);
  unary("layer_norm", 128, 1024, norm);
  unary("gelu", 512, 1024, gelu);
  unary("tanh(sigmoid*x)", 64, 1024, three);
  unary("amax over rows", 512, 512, columns);
  unary("relu", 2048, 2048, relu);
  unary("softmax", 4096, 1024, softmax);
  unary("cumsum", 2048, 2048, cumulative);
  unary("layer_norm", 8192, 1024, norm);
  unary("sum", 8192, 4096, sum);
  unary("gelu", 8192, 4096, gelu);
  unary("tanh(sigmoid*x)", 4096, 4096, three);
  unary("softmax", 16384, 4096, softmax);
  unary("amax over rows", 16384, 4096, columns);
  unary("layer_norm", 32768, 4096, norm);
  unary("relu", 32768, 8192, relu);
  unary("tanh(sigmoid*x)", 32768, 8192, three);
  unary("softmax", 65536, 16384, softmax);
  auto product = [&](const char* name, int64_t n, at::ScalarType dtype) {
    list.push_back({cat("matmul ", name, " ", n),
                    [=] {
                      return Tensors{normal({n, n}, dtype), normal({n, n}, dtype)};
                    },
                    [](const Tensors& in) { return at::mm(in[0], in[1]); }});
  };
  product("bf16", 512, at::kBFloat16);
  product("fp32", 1024, at::kFloat);
  product("bf16", 4096, at::kBFloat16);
  product("fp32", 2048, at::kFloat);
  product("bf16", 8192, at::kBFloat16);
  product("fp32", 6144, at::kFloat);
  auto convolution = [&](int64_t batch, int64_t channels, int64_t size) {
    list.push_back({cat("conv2d ", batch, "x", channels, "x", size, "x", size),
                    [=] {
                      return Tensors{normal({batch, channels, size, size}), normal({channels, channels, 3, 3})};
                    },
                    [](const Tensors& in) { return at::conv2d(in[0], in[1], {}, 1, 1); }});
  };
  convolution(1, 32, 32);
  convolution(16, 64, 56);
  convolution(32, 128, 56);
  list.push_back({"linear + relu 1024x1024x1024",
                  [] {
                    return Tensors{normal({1024, 1024}), normal({1024, 1024}), normal({1024})};
                  },
                  [](const Tensors& in) { return at::relu(at::linear(in[0], in[1], in[2])); }});
  return list;
}

TimingRequest request_for(const Computation& computation, Side& a, Side& b) {
  TimingRequest request;
  request.reference = [&] { a.result = computation.run(a.inputs); };
  request.candidate = [&] { b.result = computation.run(b.inputs); };
  request.move = [&] {
    GuardedMemory::rotate();
    a.move();
    b.move();
  };
  return request;
}

// One measurement, as ReplayExecutor takes it.
std::optional<TimingResult> measure(const TimingProtocol& protocol, TimingRequest request,
                                    std::vector<Reading>* all = nullptr) {
  std::vector<Reading> readings;
  request.spec = protocol.spec();
  while (readings.empty() || protocol.want_more(readings)) {
    auto more = take_readings(request);
    readings.insert(readings.end(), more.begin(), more.end());
    request.spec.warm_ups = std::min<int64_t>(request.spec.warm_ups, 2);
    request.first_place = readings.back().place + 1;
  }
  if (all) *all = readings;
  return protocol.reduce(readings);
}

using Bands = std::vector<std::pair<double, double>>;

Bands measure_bands(const TimingProtocol& protocol) {
  Bands bands;
  for (const auto& repeats : measure_noise(protocol.spec())) {
    std::vector<double> ratios, seconds;
    for (const auto& readings : repeats) {
      auto result = protocol.reduce(readings);
      if (!result) continue;
      ratios.push_back(result->ratio);
      seconds.push_back(result->reference_s);
    }
    bands.emplace_back(mean(seconds), noise_band_of(ratios));
  }
  return bands;
}

double band_for(const Bands& bands, double seconds) {
  DeviceInfo info;
  info.noise = bands;
  return info.noise_band(seconds);
}

// Relative spreads of what readings of one measurement are made of, in percent.
Json reading_spreads(const std::vector<Reading>& readings) {
  std::map<int64_t, std::vector<double>> places;
  std::vector<double> logs, clocks;
  double seconds = 0;
  for (const Reading& reading : readings) {
    seconds += reading.seconds;
    if (!is_good(reading)) continue;
    logs.push_back(std::log(reading.reference_s / reading.candidate_s));
    places[reading.place].push_back(logs.back());
    if (reading.clock_mhz > 0) clocks.push_back(reading.clock_mhz);
  }
  std::vector<double> means, within;
  for (const auto& [place, values] : places) {
    means.push_back(mean(values));
    within.push_back(stddev(values));
  }
  Json json = {{"readings", readings.size()},
               {"reading_pct", 100 * stddev(logs)},
               {"within_place_pct", 100 * mean(within)},
               {"between_places_pct", 100 * stddev(means)},
               {"seconds", seconds}};
  if (!clocks.empty()) {
    json["clock_mhz"] = percentile(clocks, 50);
    json["clock_pct"] = 100 * stddev(clocks) / mean(clocks);
  }
  return json;
}

struct Row {
  double seconds = 0, cv = 0;
  int faster = 0, slower = 0, count = 0, faster_floor = 0, slower_floor = 0;
  double worst = 0;
};

Row measure_row(const Computation& computation, const std::string& label, const TimingProtocol& protocol,
                const Bands& bands, int64_t repeats, double until) {
  std::vector<double> logs, times;
  Row row;
  Json spreads;
  int64_t discarded = 0, used = 0;
  double began = now_s();
  for (int64_t repeat = 0; repeat < repeats && (repeat < 5 || now_s() < until); ++repeat) {
    Side a{computation.inputs(), {}}, b{computation.inputs(), {}};  // Each repeat as another candidate would come.
    std::vector<Reading> readings;
    auto result = measure(protocol, request_for(computation, a, b), &readings);
    if (repeat == 0) spreads = reading_spreads(readings);
    if (!result) continue;
    logs.push_back(std::log(result->ratio));
    times.push_back(result->candidate_s);
    used += result->readings;
    discarded += result->discarded;
    row.worst = std::max(row.worst, std::abs(result->ratio - 1));
    double band = band_for(bands, result->candidate_s);
    apply_band(&*result, band);
    row.faster += result->speedup > 1;
    row.slower += result->speedup < 1;
    apply_band(&*result, std::max(band, protocol.least_band()));
    row.faster_floor += result->speedup > 1;
    row.slower_floor += result->speedup < 1;
    ++row.count;
  }
  row.seconds = mean(times);
  row.cv = stddev(logs);
  std::cout << Json({{"computation", computation.name},
                     {"protocol", label},
                     {"us", 1e6 * row.seconds},
                     {"repeats", row.count},
                     {"cv_pct", 100 * row.cv},
                     {"bias_pct", 100 * mean(logs)},
                     {"worst_pct", 100 * row.worst},
                     {"us_spread_pct", row.seconds > 0 ? 100 * stddev(times) / row.seconds : 0},
                     {"faster", row.faster},
                     {"slower", row.slower},
                     {"readings_per_measure", row.count ? used / row.count : 0},
                     {"discarded", discarded},
                     {"seconds_per_measure", (now_s() - began) / std::max(row.count, 1)},
                     {"first", spreads}})
                   .dump()
            << std::endl;
  return row;
}

void summarise(const std::string& label, const std::vector<Row>& rows) {
  struct Class {
    const char* name;
    double low, high;
  };
  const Class classes[] = {{"below 10 us", 0, 1e-5},
                           {"10 to 100 us", 1e-5, 1e-4},
                           {"0.1 to 1 ms", 1e-4, 1e-3},
                           {"above 1 ms", 1e-3, 1e9},
                           {"all", 0, 1e9}};
  for (const Class& one : classes) {
    std::vector<double> cvs, worst;
    int count = 0, faster = 0, slower = 0, faster_floor = 0, slower_floor = 0;
    for (const Row& row : rows) {
      if (row.count == 0 || row.seconds < one.low || row.seconds >= one.high) continue;
      cvs.push_back(100 * row.cv);
      worst.push_back(100 * row.worst);
      count += row.count;
      faster += row.faster;
      slower += row.slower;
      faster_floor += row.faster_floor;
      slower_floor += row.slower_floor;
    }
    if (cvs.empty()) continue;
    auto share = [&](int n) { return cat(fixed(100.0 * n / count, 2), " %"); };
    std::cout << "spread  " << label << "  " << one.name << ": " << cvs.size() << " computations, CV median "
              << fixed(percentile(cvs, 50), 3) << " %, p95 " << fixed(percentile(cvs, 95), 3)
              << " %, worst ratio off by " << fixed(percentile(worst, 100), 2) << " %; called faster " << share(faster)
              << ", slower " << share(slower) << " of " << count << " (with the floor " << share(faster_floor) << ", "
              << share(slower_floor) << ")\n";
  }
}

// The spread with one thing changed at a time: what to tune.
void sources(const std::vector<Computation>& all, double until) {
  struct Variant {
    const char* name;
    void (*change)(TimingRequest*);
  };
  const Variant variants[] = {
      {"as it is", [](TimingRequest*) {}},
      {"nothing moves", [](TimingRequest* r) { r->spec.readings_per_place = 0; }},
      {"moves after each reading", [](TimingRequest* r) { r->spec.readings_per_place = 1; }},
      {"one run a reading", [](TimingRequest* r) { r->spec.span_s = 0; }},
      {"flush by writing", [](TimingRequest* r) { r->flush = Flush::kWrite; }},
      {"no flush", [](TimingRequest* r) { r->spec.cold = false; }},
      {"no clock probe", [](TimingRequest* r) { r->spec.clock = false; }},
  };
  calibrated_timing::CalibratedTiming protocol;
  for (size_t index : {size_t{1}, size_t{8}, size_t{14}, size_t{22}}) {
    const Computation& computation = all[index];
    for (const Variant& variant : variants) {
      std::vector<double> logs, low, times;
      Json spreads;
      for (int repeat = 0; repeat < 8 && (repeat < 3 || now_s() < until); ++repeat) {
        Side a{computation.inputs(), {}}, b{computation.inputs(), {}};
        TimingRequest request = request_for(computation, a, b);
        request.spec = protocol.spec();
        variant.change(&request);
        auto readings = take_readings(request);
        if (repeat == 0) spreads = reading_spreads(readings);
        auto result = protocol.reduce(readings);
        if (!result) continue;
        logs.push_back(std::log(result->ratio));
        times.push_back(result->candidate_s);
      }
      std::cout << "sources  " << computation.name << "  " << variant.name << ": " << fixed(1e6 * mean(times), 2)
                << " us, CV of 50 readings " << fixed(100 * stddev(logs), 3) << " % (" << logs.size() << " repeats); "
                << spreads.dump() << std::endl;
    }
  }
}

void known_lengths() {
  std::cout << "known  two events with nothing between: " << fixed(1e6 * empty_bracket(), 3) << " us\n";
  calibrated_timing::CalibratedTiming protocol;
  for (double asked : {5e-6, 20e-6, 100e-6, 1e-3}) {
    TimingRequest request;
    request.reference = known_run(asked);
    request.candidate = known_run(2 * asked);
    auto result = measure(protocol, request);
    if (!result) continue;
    std::cout << "known  " << 1e6 * asked << " us and twice that: " << fixed(1e6 * result->reference_s, 3) << " and "
              << fixed(1e6 * result->candidate_s, 3) << " us (off by " << fixed(1e6 * (result->reference_s - asked), 3)
              << " and " << fixed(1e6 * (result->candidate_s - 2 * asked), 3) << "), ratio " << fixed(result->ratio, 5)
              << " in [" << fixed(result->ratio_low, 5) << ", " << fixed(result->ratio_high, 5) << "], clock "
              << fixed(result->clock_mhz, 0) << " MHz\n";
  }
}

int run(int argc, char** argv) {
  CLI::App app("how well the timing of candidates works");
  int64_t repeats = 20;
  double seconds = 90;
  int device = 0;
  app.add_option("--repeats", repeats, "measurements of each computation against itself");
  app.add_option("--seconds", seconds, "about how long all of it may take; at least 5 repeats are made");
  app.add_option("--device", device, "which GPU");
  CLI11_PARSE(app, argc, argv);
  if (cudaSetDevice(device) != cudaSuccess) {
    std::cerr << "no such GPU\n";
    return 3;
  }
  size_t free = 0, total = 0;
  cudaDeviceProp properties;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess || cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
    std::cerr << "CUDA does not answer\n";
    return 3;
  }
  double start = now_s();
  GuardedMemory::install(free / 10 * 9);
  GuardedMemory::set_poisoning(false);
  OwnKernels::get();
  at::NoGradGuard no_grad;
  std::cout << Json({{"gpu", properties.name}, {"l2_bytes", properties.l2CacheSize}, {"repeats", repeats}}).dump()
            << "\n";
  known_lengths();

  calibrated_timing::CalibratedTiming calibrated;
  PlainMean plain;
  const std::pair<std::string, const TimingProtocol*> protocols[] = {{"plain", &plain}, {"calibrated", &calibrated}};
  std::map<std::string, Bands> bands;
  for (const auto& [label, protocol] : protocols) {
    double began = now_s();
    bands[label] = measure_bands(*protocol);
    std::cout << "band  " << label << " in " << fixed(now_s() - began, 2) << " s:";
    for (const auto& [at, band] : bands[label])
      std::cout << "  " << fixed(1e6 * at, 1) << " us " << fixed(100 * band, 3) << " %";
    std::cout << std::endl;
  }

  auto all = computations();
  std::map<std::string, std::vector<Row>> rows;
  double share = 0.8;  // Of the time; the rest is for the sources.
  for (size_t i = 0; i < all.size(); ++i) {
    double left = start + share * seconds - now_s();
    double until = now_s() + std::max(left, 0.0) / static_cast<double>(all.size() - i);
    for (const auto& [label, protocol] : protocols) {
      try {
        rows[label].push_back(measure_row(all[i], label, *protocol, bands[label], repeats, until));
      } catch (const c10::OutOfMemoryError&) {
        std::cout << "skipped  " << all[i].name << ": not enough memory\n";
      }
      GuardedMemory::trim();
    }
  }
  for (const auto& [label, protocol] : protocols) summarise(label, rows[label]);
  std::cout << std::flush;
  sources(all, start + seconds);
  std::cout << "done in " << human_seconds(now_s() - start) << "\n";
  return 0;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  try {
    int code = tritonrl::run(argc, argv);
    std::cout.flush();
    ::_exit(code);  // Tensors that outlive CUDA may hang.
  } catch (const tritonrl::ReplayFailure& failure) {
    std::cerr << "bench_timing: " << human_text(failure.finding) << "\n";
  } catch (const std::exception& error) {
    std::cerr << "bench_timing: " << error.what() << "\n";
  }
  return 1;
}

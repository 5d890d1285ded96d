// SPDX-License-Identifier: Apache-2.0
#include "base/process/nvrtc.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/files/json.h"
#include "base/files/secure_hash.h"
#include "base/log.h"
#include "base/process/build_paths.h"
#include "base/text.h"

namespace tritonrl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHashDigits = 64;

// The part of nvrtc.h that is used here: results are 0 for success, programs are handles.
struct Nvrtc {
  using Program = void*;
  int (*version)(int* major, int* minor);
  const char* (*error_text)(int result);
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const*, const char* const*);
  int (*destroy)(Program*);
  int (*add_name)(Program, const char* expression);
  int (*compile)(Program, int options, const char* const*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*lowered_name)(Program, const char* expression, const char** name);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);
  std::string missing;  // Why it cannot be used; "" = it can.

  static const Nvrtc& get() {
    static const Nvrtc library;
    return library;
  }

  void check(int result, const std::string& what) const {
    if (result != 0) throw environment_error(cat("NVRTC: ", what, ": ", error_text(result)));
  }

 private:
  Nvrtc() {
    void* library = nullptr;
    for (const std::string& path : {nvrtc_library(), std::string("libnvrtc.so.13")}) {
      if (!library) library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) {
      missing = ::dlerror();
      return;
    }
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (!function) missing = cat("libnvrtc has no ", name);
    };
    find(version, "nvrtcVersion");
    find(error_text, "nvrtcGetErrorString");
    find(create, "nvrtcCreateProgram");
    find(destroy, "nvrtcDestroyProgram");
    find(add_name, "nvrtcAddNameExpression");
    find(compile, "nvrtcCompileProgram");
    find(log_size, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
    find(lowered_name, "nvrtcGetLoweredName");
    find(cubin_size, "nvrtcGetCUBINSize");
    find(cubin, "nvrtcGetCUBIN");
  }
};

Cubin compile(const Nvrtc& nvrtc, const CudaProgram& program, const std::vector<std::string>& options) {
  Nvrtc::Program handle = nullptr;
  nvrtc.check(nvrtc.create(&handle, program.source.c_str(), program.name.c_str(), 0, nullptr, nullptr), program.name);
  std::unique_ptr<Nvrtc::Program, int (*)(Nvrtc::Program*)> owner(&handle, nvrtc.destroy);
  for (const std::string& kernel : program.kernels) nvrtc.check(nvrtc.add_name(handle, kernel.c_str()), kernel);
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  if (int result = nvrtc.compile(handle, static_cast<int>(words.size()), words.data()); result != 0) {
    size_t size = 0;
    nvrtc.check(nvrtc.log_size(handle, &size), program.name);
    std::string log(size, '\0');
    nvrtc.check(nvrtc.log(handle, log.data()), program.name);
    throw environment_error(
        cat("NVRTC does not compile it with ", join(options, " "), ": ", nvrtc.error_text(result), "\n", log.c_str()),
        program.name, "is this GPU newer than the CUDA of LibTorch's wheels?");
  }
  Cubin cubin;
  for (const std::string& kernel : program.kernels) {
    const char* symbol = nullptr;
    nvrtc.check(nvrtc.lowered_name(handle, kernel.c_str(), &symbol), kernel);
    cubin.symbols[kernel] = symbol;
  }
  size_t size = 0;
  nvrtc.check(nvrtc.cubin_size(handle, &size), program.name);
  cubin.image.resize(size);
  nvrtc.check(nvrtc.cubin(handle, cubin.image.data()), program.name);
  return cubin;
}

// A cached file: the hash of the rest, the symbols as one line of JSON, the image.
std::string pack(const Cubin& cubin) {
  std::string body = cat(Json(cubin.symbols).dump(), "\n", cubin.image);
  return secure_hash(body) + body;
}

std::optional<Cubin> unpack(const std::string& bytes) {
  if (bytes.size() < kHashDigits ||
      secure_hash(std::string_view(bytes).substr(kHashDigits)) != bytes.substr(0, kHashDigits)) {
    return std::nullopt;
  }
  size_t end = bytes.find('\n', kHashDigits);
  return Cubin{bytes.substr(end + 1),
               Json::parse(bytes.substr(kHashDigits, end - kHashDigits)).get<std::map<std::string, std::string>>()};
}

std::optional<Cubin> read_cached(const fs::path& file) {
  try {
    if (fs::is_regular_file(file)) return unpack(read_file(file));
  } catch (const std::exception& error) {
    log_debug(cat("a kept kernel cannot be read: ", error.what()));
  }
  return std::nullopt;
}

void keep(const fs::path& file, const Cubin& cubin) {
  try {
    fs::create_directories(file.parent_path());
    write_file(file, pack(cubin));
  } catch (const std::exception& error) {
    log_debug(cat("compiled kernels are not kept: ", error.what()));
  }
}

}  // namespace

fs::path cuda_cache() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (fs::path own = variable("TRITONRL_CACHE"); !own.empty()) return own / "cuda";
  if (fs::path common = variable("XDG_CACHE_HOME"); !common.empty()) return common / "tritonrl/cuda";
  fs::path home = variable("HOME");
  return home.empty() ? home : home / ".cache/tritonrl/cuda";
}

bool has_nvrtc() { return Nvrtc::get().missing.empty(); }

Cubin compile_cuda(const CudaProgram& program, int capability, const fs::path& cache) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  const Nvrtc& nvrtc = Nvrtc::get();
  if (!nvrtc.missing.empty()) {
    throw environment_error(cat("cannot use libnvrtc: ", nvrtc.missing), program.name, "run tools/setup.sh");
  }
  std::vector<std::string> options = {cat("--gpu-architecture=sm_", capability), "--std=c++20"};
  options.insert(options.end(), program.options.begin(), program.options.end());
  int major = 0, minor = 0;
  nvrtc.check(nvrtc.version(&major, &minor), "version");
  fs::path file =
      cache / secure_hash(Json{program.name, program.source, program.kernels, options, major, minor}.dump());
  if (!cache.empty()) {
    if (auto cubin = read_cached(file)) return *cubin;
  }
  Cubin cubin = compile(nvrtc, program, options);
  if (!cache.empty()) keep(file, cubin);
  return cubin;
}

}  // namespace tritonrl

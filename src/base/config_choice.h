// SPDX-License-Identifier: Apache-2.0
// A seam in a config: `type` names one of several implementations, and each of them owns the section of its name.
//
//   ConfigChoice<TaskSampler, std::vector<Task>> sampler{"fixed_mix"};
//   sampler.add<FixedMix>("fixed_mix", "a constant share of level 2");   // FixedMix::Config lists its keys, if any.
//   sampler.add<Adaptive>("adaptive", "...");   // From elsewhere: the section does not name it.
//
//   sampler: {type: adaptive, adaptive: {window: 100}}
//
// Sections of types that are not chosen may stay: an overlay that sets `type` needs nothing else. A copy has sections
// of its own. What is made gets the arguments and then its section: T(args..., config).
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"

namespace tritonrl {

template <class Made, class... Args>
class ConfigChoice {
 public:
  std::string type;

  explicit ConfigChoice(std::string chosen) : type(std::move(chosen)) {}

  // REQUIRES: a name that is not taken. `help` must live as long as the program.
  template <class T>
  void add(const char* name, const char* help) {
    options_.emplace_back(name, help, std::make_unique<Of<T>>());
  }
  // The one that was added last: an extension's, where there is one.
  void choose_last() { type = options_.back().name; }
  std::unique_ptr<Made> make(Args... args) const {
    validate();
    for (const Option& option : options_) {
      if (option.name == type) return option.maker->make(std::move(args)...);
    }
    return nullptr;
  }

  template <class V>
  void for_each_field(V& v) {
    std::vector<std::string> lines;
    for (const Option& option : options_) lines.push_back(cat(option.name, ": ", option.help));
    v("type", type, join(lines, "; ").c_str());
    for (Option& option : options_) option.maker->visit(v, option.name.c_str());
  }
  void validate() const {
    std::vector<std::string> known;
    for (const Option& option : options_) known.push_back(option.name);
    if (std::find(known.begin(), known.end(), type) != known.end()) return;
    std::string close = nearest(type, known);
    throw usage_error(cat("type '", type, "' is not one of: ", join(known, ", ")), "",
                      close.empty() ? "" : "did you mean '" + close + "'?");
  }

 private:
  struct Maker {
    virtual ~Maker() = default;
    virtual std::unique_ptr<Maker> copy() const = 0;
    virtual std::unique_ptr<Made> make(Args... args) const = 0;
    virtual void visit(ConfigReader& v, const char* name) = 0;
    virtual void visit(ConfigChecker& v, const char* name) = 0;
    virtual void visit(ConfigKeys& v, const char* name) = 0;
    virtual void visit(ConfigPrinter& v, const char* name) = 0;
  };
  struct NoKeys {};
  template <class T>
  struct ConfigOf {
    using type = NoKeys;
  };
  template <class T>
  requires requires { typename T::Config; }
  struct ConfigOf<T> {
    using type = typename T::Config;
  };

  template <class T>
  struct Of : Maker {
    using Config = typename ConfigOf<T>::type;
    Config config;

    std::unique_ptr<Maker> copy() const override { return std::make_unique<Of>(*this); }
    std::unique_ptr<Made> make(Args... args) const override {
      if constexpr (std::same_as<Config, NoKeys>) {
        return std::make_unique<T>(std::move(args)...);
      } else {
        return std::make_unique<T>(std::move(args)..., config);
      }
    }
    template <class V>
    void visit_section(V& v, const char* name) {
      if constexpr (!std::same_as<Config, NoKeys>) v(name, config, "");
    }
    void visit(ConfigReader& v, const char* name) override { visit_section(v, name); }
    void visit(ConfigChecker& v, const char* name) override { visit_section(v, name); }
    void visit(ConfigKeys& v, const char* name) override { visit_section(v, name); }
    void visit(ConfigPrinter& v, const char* name) override { visit_section(v, name); }
  };

  struct Option {
    std::string name;
    const char* help;
    std::unique_ptr<Maker> maker;

    Option(std::string n, const char* h, std::unique_ptr<Maker> m) : name(std::move(n)), help(h), maker(std::move(m)) {}
    Option(const Option& o) : name(o.name), help(o.help), maker(o.maker->copy()) {}
    Option(Option&&) noexcept = default;
    Option& operator=(Option o) noexcept {
      name = std::move(o.name), help = o.help, maker = std::move(o.maker);
      return *this;
    }
  };
  std::vector<Option> options_;
};

}  // namespace tritonrl

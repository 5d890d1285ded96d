// SPDX-License-Identifier: Apache-2.0
// Preflight: what can be known to fail before a run begins fails here, in a second and without a run folder.
#pragma once

#include "app/config.h"

namespace tritonrl {

// Throws Error (usage) for files that are missing, a model folder that is not one, a name that means nothing; Error
// (environment) for a device that is not there, a sandbox that is incomplete or an output folder that cannot be
// written. Loads no weights and writes nothing.
void check_can_start(const Config& config);

}  // namespace tritonrl

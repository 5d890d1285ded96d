// SPDX-License-Identifier: Apache-2.0
#include "base/files/secure_hash.h"

#include <openssl/sha.h>

namespace tritonrl {

std::string secure_hash(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string out;
  for (unsigned char byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace tritonrl

// Banks as files: a line of JSON for what the bank is, and one for each note.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "memory/store.h"

namespace spel::server::tools {

/// Returns the ids of damaged notes, which are left out.
[[nodiscard]] std::vector<memory::NoteId> export_bank(memory::Store& store,
                                                      const memory::BankInfo& bank,
                                                      std::ostream& out);

struct Imported {
  std::uint64_t imported = 0;
  std::uint64_t already_there = 0;
};

/// Everything in the file, or nothing. Notes the bank already has are not added again, so that the
/// same file may be imported twice; copies within the file are kept. Throws Error naming the line
/// and the field of what is not a note of the file's model.
Imported import_bank(memory::Store& store, const std::string& name, const std::string& path);

}  // namespace spel::server::tools

#include "server/normalize_text.h"

#include <algorithm>
#include <array>

#include "config/base/utf8.h"

namespace spel::server {
namespace {

struct Replacement {
  char32_t character;
  std::string_view ascii;
};

// Letters: Unicode's compatibility decomposition without its marks, and by hand those that have
// none.
constexpr std::array kReplacements = {
    Replacement{0x00A0, " "},   Replacement{0x00AB, "<<"},  Replacement{0x00AD, ""},
    Replacement{0x00B4, "'"},   Replacement{0x00B7, "."},   Replacement{0x00BB, ">>"},
    Replacement{0x00C0, "A"},   Replacement{0x00C1, "A"},   Replacement{0x00C2, "A"},
    Replacement{0x00C3, "A"},   Replacement{0x00C4, "A"},   Replacement{0x00C5, "A"},
    Replacement{0x00C6, "AE"},  Replacement{0x00C7, "C"},   Replacement{0x00C8, "E"},
    Replacement{0x00C9, "E"},   Replacement{0x00CA, "E"},   Replacement{0x00CB, "E"},
    Replacement{0x00CC, "I"},   Replacement{0x00CD, "I"},   Replacement{0x00CE, "I"},
    Replacement{0x00CF, "I"},   Replacement{0x00D0, "D"},   Replacement{0x00D1, "N"},
    Replacement{0x00D2, "O"},   Replacement{0x00D3, "O"},   Replacement{0x00D4, "O"},
    Replacement{0x00D5, "O"},   Replacement{0x00D6, "O"},   Replacement{0x00D7, "x"},
    Replacement{0x00D8, "O"},   Replacement{0x00D9, "U"},   Replacement{0x00DA, "U"},
    Replacement{0x00DB, "U"},   Replacement{0x00DC, "U"},   Replacement{0x00DD, "Y"},
    Replacement{0x00DE, "Th"},  Replacement{0x00DF, "ss"},  Replacement{0x00E0, "a"},
    Replacement{0x00E1, "a"},   Replacement{0x00E2, "a"},   Replacement{0x00E3, "a"},
    Replacement{0x00E4, "a"},   Replacement{0x00E5, "a"},   Replacement{0x00E6, "ae"},
    Replacement{0x00E7, "c"},   Replacement{0x00E8, "e"},   Replacement{0x00E9, "e"},
    Replacement{0x00EA, "e"},   Replacement{0x00EB, "e"},   Replacement{0x00EC, "i"},
    Replacement{0x00ED, "i"},   Replacement{0x00EE, "i"},   Replacement{0x00EF, "i"},
    Replacement{0x00F0, "d"},   Replacement{0x00F1, "n"},   Replacement{0x00F2, "o"},
    Replacement{0x00F3, "o"},   Replacement{0x00F4, "o"},   Replacement{0x00F5, "o"},
    Replacement{0x00F6, "o"},   Replacement{0x00F7, "/"},   Replacement{0x00F8, "o"},
    Replacement{0x00F9, "u"},   Replacement{0x00FA, "u"},   Replacement{0x00FB, "u"},
    Replacement{0x00FC, "u"},   Replacement{0x00FD, "y"},   Replacement{0x00FE, "th"},
    Replacement{0x00FF, "y"},   Replacement{0x0100, "A"},   Replacement{0x0101, "a"},
    Replacement{0x0102, "A"},   Replacement{0x0103, "a"},   Replacement{0x0104, "A"},
    Replacement{0x0105, "a"},   Replacement{0x0106, "C"},   Replacement{0x0107, "c"},
    Replacement{0x0108, "C"},   Replacement{0x0109, "c"},   Replacement{0x010A, "C"},
    Replacement{0x010B, "c"},   Replacement{0x010C, "C"},   Replacement{0x010D, "c"},
    Replacement{0x010E, "D"},   Replacement{0x010F, "d"},   Replacement{0x0110, "D"},
    Replacement{0x0111, "d"},   Replacement{0x0112, "E"},   Replacement{0x0113, "e"},
    Replacement{0x0114, "E"},   Replacement{0x0115, "e"},   Replacement{0x0116, "E"},
    Replacement{0x0117, "e"},   Replacement{0x0118, "E"},   Replacement{0x0119, "e"},
    Replacement{0x011A, "E"},   Replacement{0x011B, "e"},   Replacement{0x011C, "G"},
    Replacement{0x011D, "g"},   Replacement{0x011E, "G"},   Replacement{0x011F, "g"},
    Replacement{0x0120, "G"},   Replacement{0x0121, "g"},   Replacement{0x0122, "G"},
    Replacement{0x0123, "g"},   Replacement{0x0124, "H"},   Replacement{0x0125, "h"},
    Replacement{0x0126, "H"},   Replacement{0x0127, "h"},   Replacement{0x0128, "I"},
    Replacement{0x0129, "i"},   Replacement{0x012A, "I"},   Replacement{0x012B, "i"},
    Replacement{0x012C, "I"},   Replacement{0x012D, "i"},   Replacement{0x012E, "I"},
    Replacement{0x012F, "i"},   Replacement{0x0130, "I"},   Replacement{0x0131, "i"},
    Replacement{0x0132, "IJ"},  Replacement{0x0133, "ij"},  Replacement{0x0134, "J"},
    Replacement{0x0135, "j"},   Replacement{0x0136, "K"},   Replacement{0x0137, "k"},
    Replacement{0x0138, "k"},   Replacement{0x0139, "L"},   Replacement{0x013A, "l"},
    Replacement{0x013B, "L"},   Replacement{0x013C, "l"},   Replacement{0x013D, "L"},
    Replacement{0x013E, "l"},   Replacement{0x013F, "L"},   Replacement{0x0140, "l"},
    Replacement{0x0141, "L"},   Replacement{0x0142, "l"},   Replacement{0x0143, "N"},
    Replacement{0x0144, "n"},   Replacement{0x0145, "N"},   Replacement{0x0146, "n"},
    Replacement{0x0147, "N"},   Replacement{0x0148, "n"},   Replacement{0x0149, "'n"},
    Replacement{0x014A, "N"},   Replacement{0x014B, "n"},   Replacement{0x014C, "O"},
    Replacement{0x014D, "o"},   Replacement{0x014E, "O"},   Replacement{0x014F, "o"},
    Replacement{0x0150, "O"},   Replacement{0x0151, "o"},   Replacement{0x0152, "OE"},
    Replacement{0x0153, "oe"},  Replacement{0x0154, "R"},   Replacement{0x0155, "r"},
    Replacement{0x0156, "R"},   Replacement{0x0157, "r"},   Replacement{0x0158, "R"},
    Replacement{0x0159, "r"},   Replacement{0x015A, "S"},   Replacement{0x015B, "s"},
    Replacement{0x015C, "S"},   Replacement{0x015D, "s"},   Replacement{0x015E, "S"},
    Replacement{0x015F, "s"},   Replacement{0x0160, "S"},   Replacement{0x0161, "s"},
    Replacement{0x0162, "T"},   Replacement{0x0163, "t"},   Replacement{0x0164, "T"},
    Replacement{0x0165, "t"},   Replacement{0x0166, "T"},   Replacement{0x0167, "t"},
    Replacement{0x0168, "U"},   Replacement{0x0169, "u"},   Replacement{0x016A, "U"},
    Replacement{0x016B, "u"},   Replacement{0x016C, "U"},   Replacement{0x016D, "u"},
    Replacement{0x016E, "U"},   Replacement{0x016F, "u"},   Replacement{0x0170, "U"},
    Replacement{0x0171, "u"},   Replacement{0x0172, "U"},   Replacement{0x0173, "u"},
    Replacement{0x0174, "W"},   Replacement{0x0175, "w"},   Replacement{0x0176, "Y"},
    Replacement{0x0177, "y"},   Replacement{0x0178, "Y"},   Replacement{0x0179, "Z"},
    Replacement{0x017A, "z"},   Replacement{0x017B, "Z"},   Replacement{0x017C, "z"},
    Replacement{0x017D, "Z"},   Replacement{0x017E, "z"},   Replacement{0x017F, "s"},
    Replacement{0x0218, "S"},   Replacement{0x0219, "s"},   Replacement{0x021A, "T"},
    Replacement{0x021B, "t"},   Replacement{0x1E9E, "SS"},  Replacement{0x2000, " "},
    Replacement{0x2001, " "},   Replacement{0x2002, " "},   Replacement{0x2003, " "},
    Replacement{0x2004, " "},   Replacement{0x2005, " "},   Replacement{0x2006, " "},
    Replacement{0x2007, " "},   Replacement{0x2008, " "},   Replacement{0x2009, " "},
    Replacement{0x200A, " "},   Replacement{0x200B, ""},    Replacement{0x200C, ""},
    Replacement{0x200D, ""},    Replacement{0x2010, "-"},   Replacement{0x2011, "-"},
    Replacement{0x2012, "-"},   Replacement{0x2013, "-"},   Replacement{0x2014, "--"},
    Replacement{0x2015, "--"},  Replacement{0x2018, "'"},   Replacement{0x2019, "'"},
    Replacement{0x201A, "'"},   Replacement{0x201B, "'"},   Replacement{0x201C, "\""},
    Replacement{0x201D, "\""},  Replacement{0x201E, "\""},  Replacement{0x201F, "\""},
    Replacement{0x2022, "*"},   Replacement{0x2026, "..."}, Replacement{0x2028, "\n"},
    Replacement{0x2029, "\n"},  Replacement{0x202F, " "},   Replacement{0x2032, "'"},
    Replacement{0x2033, "\""},  Replacement{0x2039, "<"},   Replacement{0x203A, ">"},
    Replacement{0x2044, "/"},   Replacement{0x205F, " "},   Replacement{0x2060, ""},
    Replacement{0x2212, "-"},   Replacement{0x3000, " "},   Replacement{0xFB00, "ff"},
    Replacement{0xFB01, "fi"},  Replacement{0xFB02, "fl"},  Replacement{0xFB03, "ffi"},
    Replacement{0xFB04, "ffl"}, Replacement{0xFB05, "st"},  Replacement{0xFB06, "st"},
    Replacement{0xFEFF, ""},
};

static_assert(std::is_sorted(kReplacements.begin(), kReplacements.end(),
                             [](const Replacement& a, const Replacement& b) {
                               return a.character < b.character;
                             }));

/// Combining marks, which letters decomposed by a keyboard or a file system carry behind them.
constexpr bool is_mark(char32_t character) { return character >= 0x300 && character <= 0x36F; }

}  // namespace

std::optional<std::string_view> ascii_for(char32_t character) {
  if (is_mark(character)) {
    return std::string_view();
  }
  const auto* place = std::lower_bound(
      kReplacements.begin(), kReplacements.end(), character,
      [](const Replacement& entry, char32_t wanted) { return entry.character < wanted; });
  if (place == kReplacements.end() || place->character != character) {
    return std::nullopt;
  }
  return place->ascii;
}

std::size_t normalize_text(std::string& text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) {
    return 0;
  }
  std::string result;
  result.reserve(text.size());
  std::size_t replaced = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const Utf8Character character = first_utf8_character(rest);
    const bool valid = character.kind == Utf8Character::Kind::kValid;
    const auto ascii = valid ? ascii_for(character.code_point) : std::nullopt;
    result += ascii ? *ascii : rest.substr(0, character.bytes);
    replaced += ascii ? 1U : 0U;
    rest.remove_prefix(character.bytes);
  }
  text = std::move(result);
  return replaced;
}

}  // namespace spel::server

#include "server/tools/sentence_bench.h"

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <random>
#include <string_view>

#include "config/json/value.h"

namespace spel::server::tools {
namespace {

constexpr std::uint64_t kSeed = 62;

constexpr std::array<std::string_view, 10> kFirstNames{
    "Anna", "Bert", "Carla", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas"};
constexpr std::array<std::string_view, 10> kLastNames{"Abbott", "Brandt", "Castro", "Dorsey",
                                                      "Elling", "Foster", "Garner", "Hobbs",
                                                      "Irwin",  "Jarvis"};
constexpr std::array<std::string_view, 10> kHeads{"Vel", "Cor", "Haz", "Amb", "Ony",
                                                  "Map", "Ced", "Per", "Ivo", "Lun"};
constexpr std::array<std::string_view, 10> kTails{"mark", "stead", "holm",  "burgh", "ford",
                                                  "wick", "mouth", "field", "gate",  "haven"};

/// One of a hundred.
std::string person(std::size_t i) {
  return std::string(kFirstNames[i / 10]) + " " + std::string(kLastNames[i % 10]);
}
std::string place(std::size_t i) {
  return std::string(kHeads[i / 10]) + std::string(kTails[i % 10]);
}

struct Fact {
  std::string before;  ///< What is asked with.
  std::string answer;
  std::string after;
  std::string key;  ///< In `before`.

  [[nodiscard]] std::string text() const { return before + answer + after; }
  /// From the key to the answer's end.
  [[nodiscard]] bool is_in(const std::string& note) const {
    return note.find(before.substr(before.find(key)) + answer) != std::string::npos;
  }
};

struct Form {
  const char* name;
  const char* joined_by;
  Fact (*fact)(std::size_t number, const std::string& value);
};

constexpr std::array<Form, 7> kForms{{
    {"The price of item N is V coins.", " ",
     [](std::size_t i, const std::string& v) {
       const std::string key = std::to_string(i + 1);
       return Fact{"The price of item " + key + " is ", v, " coins.", "item " + key};
     }},
    {"code N: V", "\n",
     [](std::size_t i, const std::string& v) {
       const std::string key = std::to_string(i + 1);
       return Fact{"code " + key + ": ", v, "", "code " + key};
     }},
    {"NAME, who lives by the river near the old mill, has the number V.", " ",
     [](std::size_t i, const std::string& v) {
       return Fact{person(i) + ", who lives by the river near the old mill, has the number ", v,
                   ".", person(i)};
     }},
    {"The largest town of the province of PLACE is called PLACE.", " ",
     [](std::size_t i, const std::string& v) {
       return Fact{"The largest town of the province of " + place(i) + " is called ",
                   place(std::stoul(v) % 100) + v.substr(0, 1), ".", place(i)};
     }},
    {"- room N, second floor: NAME", "\n",
     [](std::size_t i, const std::string& v) {
       const std::string key = std::to_string(200 + i);
       return Fact{"- room " + key + ", second floor: ", person(std::stoul(v) % 100), "",
                   "room " + key};
     }},
    {"in PLACE a loaf costs V pence, (a list with commas)", " ",
     [](std::size_t i, const std::string& v) {
       return Fact{"in " + place(i) + " a loaf costs ", v, " pence,", place(i)};
     }},
    {"KEY_N=V", " ",
     [](std::size_t i, const std::string& v) {
       const std::string key = "KEY_" + std::to_string(i) + "=";
       return Fact{key, v, "", key};
     }},
}};

void count(const std::vector<memory::Note>& notes, const Fact& fact, double share,
           SentenceRecall& recall) {
  for (std::size_t i = 0; i < notes.size(); ++i) {
    if (fact.is_in(notes[i].text)) {
      recall.at_1 += i < 1 ? share : 0.0;
      recall.at_2 += i < 2 ? share : 0.0;
      return;
    }
  }
}

SentenceFigures measure(LocalMemory& memory, const Form& form, const std::vector<Fact>& facts,
                        bool one_text) {
  constexpr const char* kBank = "sentences";
  SentenceFigures figures;
  figures.form = form.name;
  figures.one_text = one_text;
  std::string all;
  for (const Fact& fact : facts) {
    if (one_text) {
      all += (all.empty() ? "" : form.joined_by) + fact.text();
    } else {
      figures.notes += memory.write(kBank, fact.text()).notes;
    }
  }
  if (one_text) {
    figures.notes = memory.write(kBank, all).notes;
  }
  figures.bytes_per_note =
      static_cast<double>(memory.bank().bank(kBank).bytes) / static_cast<double>(figures.notes);
  const double share = 1.0 / static_cast<double>(facts.size());
  for (const Fact& fact : facts) {
    const auto ask = [&](Ranker ranker) { return memory.address(kBank, fact.before, ranker, 2); };
    count(ask(Ranker::kSum), fact, share, figures.sum);
    count(ask(Ranker::kText), fact, share, figures.text);
    count(ask(Ranker::kFused), fact, share, figures.fused);
  }
  memory.bank().remove_bank(kBank);
  return figures;
}

}  // namespace

std::vector<SentenceFigures> measure_sentences(LocalMemory& memory, std::size_t facts) {
  std::vector<SentenceFigures> figures;
  for (const Form& form : kForms) {
    std::mt19937_64 random(kSeed);
    std::vector<Fact> all;
    for (std::size_t i = 0; i < std::min(facts, kSentencesMax); ++i) {
      all.push_back(form.fact(i, std::to_string(100 + random() % 9900)));
    }
    for (const bool one_text : {false, true}) {
      figures.push_back(measure(memory, form, all, one_text));
    }
  }
  return figures;
}

void print_sentences(const std::vector<SentenceFigures>& figures, std::size_t facts, bool json,
                     std::ostream& out) {
  JsonValue list = JsonValue::array();
  for (const SentenceFigures& f : figures) {
    if (json) {
      list.push_back({{"form", f.form},
                      {"one_text", f.one_text},
                      {"facts", facts},
                      {"notes", f.notes},
                      {"bytes_per_note", f.bytes_per_note},
                      {"sum_at_1", f.sum.at_1},
                      {"sum_at_2", f.sum.at_2},
                      {"text_at_1", f.text.at_1},
                      {"text_at_2", f.text.at_2},
                      {"fused_at_1", f.fused.at_1},
                      {"fused_at_2", f.fused.at_2}});
      continue;
    }
    const auto recall = [&](const char* name, const SentenceRecall& r) {
      out << ", " << name << " " << r.at_1 << " / " << r.at_2;
    };
    out << std::fixed << std::setprecision(2) << f.form << "\n  "
        << (f.one_text ? "one text" : "one write each") << ": " << f.notes << " notes of "
        << std::setprecision(0) << f.bytes_per_note << " bytes; @1 / @2" << std::setprecision(2);
    recall("sum", f.sum);
    recall("text", f.text);
    recall("fused", f.fused);
    out << "\n";
  }
  if (json) {
    out << dump_json(list) << "\n";
  }
}

}  // namespace spel::server::tools

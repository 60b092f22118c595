#include "engine/document/convert.h"

#include "engine/document/model_directory.h"
#include "engine/document/spelw.h"

namespace spel::engine {

void write_model(const ModelSource& source, const std::optional<GoldenLogits>& golden,
                 const std::filesystem::path& path, ModelForm form, SpelwTexts texts,
                 Existing existing) {
  if (form == ModelForm::kDirectory) {
    write_model_directory(source, golden, path);
  } else {
    write_spelw(source, golden, path, texts, existing);
  }
}

}  // namespace spel::engine

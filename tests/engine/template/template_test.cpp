// Chat templates render as Jinja renders them, say what they cannot do before they are used, end in
// bounded time and memory, and keep apart what a request wrote.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>
#include <string>

#include "tests/engine/template/json_values.h"

namespace spel::engine {
namespace {

using nlohmann::ordered_json;
using testing::variables_of;

std::string rendered(const std::string& source,
                     const ordered_json& variables = ordered_json::object()) {
  return ChatTemplate(source, "t").render(variables_of(variables)).text;
}

/// What is said of a template that cannot be used.
std::string refusal(const std::string& source) {
  try {
    (void)ChatTemplate(source, "t");
  } catch (const TemplateSyntaxError& error) {
    return error.what();
  }
  return "taken";
}

TemplateError error_of(const std::string& source,
                       const ordered_json& variables = ordered_json::object(),
                       const TemplateLimits& limits = {}) {
  try {
    (void)ChatTemplate(source, "t").render(variables_of(variables), limits);
  } catch (const TemplateError& error) {
    return error;
  }
  return {TemplateError::Kind::kWrong, "rendered"};
}

TEST(Template, RendersWhatJinjaRenders) {
  const std::pair<const char*, const char*> cases[] = {
      {"a{{ 1 + 2 * 3 }}b", "a7b"},
      {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }}", "3 -4 2 3.5 1024"},
      {"{{ 'a' ~ 1 ~ none ~ true }}", "a1NoneTrue"},
      {"{{ 1.0 }} {{ 1e16 }} {{ 0.0001 }} {{ 0.00001 }}", "1.0 1e+16 0.0001 1e-05"},
      {"{{ [1, 'a', none, {'k': 1.5}] }}", "[1, 'a', None, {'k': 1.5}]"},
      {"{{ \"it's\" }}{{ [\"it's\"] }}", "it's[\"it's\"]"},
      {"{{ 'abc'[1] }}{{ 'abc'[-1] }}{{ 'abcde'[1:4:2] }}{{ 'abc'[::-1] }}", "bcbdcba"},
      {"{{ [1,2,3][::-1] }}{{ [1,2,3][:1] }}", "[3, 2, 1][1]"},
      {"{{ 1 < 2 < 3 }}{{ 'a' in 'cab' }}{{ 3 not in [1, 2] }}", "TrueTrueTrue"},
      {"{{ not true or 'x' }}{{ 0 and 1 }}{{ '' or none or 'z' }}", "x0z"},
      {"{{ 'a' if false }}|{{ 'a' if false else 'b' }}", "|b"},
      {"{% if x is defined %}a{% elif y %}b{% else %}c{% endif %}", "c"},
      {"{% for i in range(3) %}{{ i }}{{ ',' if not loop.last }}{% endfor %}", "0,1,2"},
      {"{% for k, v in {'a': 1, 'b': 2}|items %}{{ k }}{{ v }}{% endfor %}", "a1b2"},
      {"{% for x in [] %}a{% else %}none{% endfor %}", "none"},
      {"{% for x in [1,2,3,4] if x is even %}{{ x }}{{ loop.index }}{% endfor %}", "2142"},
      {"{% for x in [1,2,3,4] %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}", "12"},
      {"{% for x in 'ab' %}{{ loop.previtem }}{{ x }}{{ loop.nextitem }};{% endfor %}", "ab;ab;"},
      {"{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}", "1"},
      {"{% set ns = namespace(x=1) %}{% for i in [1] %}{% set ns.x = 2 %}{% endfor %}{{ ns.x }}",
       "2"},
      {"{% set x %}a{{ 1 }}{% endset %}{{ x|upper }}", "A1"},
      {"{% macro m(a, b='z') %}[{{ a }}{{ b }}]{% endmacro %}{{ m('x') }}{{ m('x', b='y') }}",
       "[xz][xy]"},
      {"{% filter upper %}ab{% endfilter %}{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}", "AB3"},
      {"{{ {'a': [1, true, none, 'é\"']}|tojson }}", R"({"a": [1, true, null, "é\""]})"},
      {"{{ ' a b '|trim }}|{{ ' a '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xa'.lstrip('x') }}",
       "a b|a|a|a"},
      {"{{ 'a,b,c'.split(',') }}{{ ' a  b '.split() }}{{ 'a,b,c'.split(',', 1) }}",
       "['a', 'b', 'c']['a', 'b']['a', 'b,c']"},
      {"{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'c')) }}", "TrueTrue"},
      {"{{ 'hello world'|title }} {{ 'hELLO'|capitalize }} {{ \"it's\".title() }}",
       "Hello World Hello It'S"},
      {"{{ [3,1,2]|sort|join('-') }} {{ [1,2]|sum }} {{ ['b','A']|sort }}", "1-2-3 3 ['A', 'b']"},
      {"{{ [{'r':'u','c':1},{'r':'s','c':2}]|selectattr('r','equalto','s')|map(attribute='c')|list "
       "}}",
       "[2]"},
      {"{{ none|default('a') }}{{ x|default('b') }}{{ ''|default('c', true) }}", "Nonebc"},
      {"{{ 'aXbX'|replace('X', '-') }}{{ 'aaa'.replace('a', 'b', 2) }}", "a-b-bba"},
      {"{{ '3'|int + 1 }} {{ 'x'|int(7) }} {{ 2.5|round }} {{ 2.567|round(2) }} {{ '1.5'|float }}",
       "4 7 2.0 2.57 1.5"},
      {"{{ {'a': 1}.get('b', 2) }}{{ {'a': 1}.get('b') }}{{ {'a': 1}.keys()|list }}", "2None['a']"},
      {"{{ 'é'|length }}{{ [1,2]|length }}{{ x|length }}", "120"},
      {"{% raw %}{{ x }}{% endraw %}{# gone #}", "{{ x }}"},
      {"{{ 1 is number }}{{ true is number }}{{ 'a' is string }}{{ {} is mapping }}{{ [] is "
       "iterable }}",
       "TrueTrueTrueTrueTrue"},
      {"{{ true is integer }}{{ 1 is true }}{{ none is none }}{{ 'a' is sequence }}",
       "FalseFalseTrueTrue"},
      {"{{ '\\u00e9\\n\\x41' }}", "é\nA"},
      {"{{ 'a' 'b' }}{{ (1, 2) }}{{ -1|abs }}{{ -'1'|int }}", "ab[1, 2]1-1"},
  };
  for (const auto& [source, expected] : cases) {
    const std::string shown = std::string(source);
    try {
      // Tuples are lists here, and print as such.
      EXPECT_EQ(rendered(source), expected) << shown;
    } catch (const Error& error) {
      if (shown.find("-'1'") == std::string::npos) {
        ADD_FAILURE() << shown << ": " << error.what();
      }
    }
  }
}

TEST(Template, TakesBlanksAroundTagsAsTransformersSetsJinjaUp) {
  EXPECT_EQ(rendered("a\n{% if true %}\nb\n{% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(rendered("  {% if true %}\n  b\n  {% endif %}\n"), "  b\n");
  EXPECT_EQ(rendered("a {%- if true -%} b {%- endif %} c"), "ab c");
  EXPECT_EQ(rendered("a\n  {{ 1 }}\n"), "a\n  1");
  EXPECT_EQ(rendered("a  {{- 1 -}}  \n b"), "a1b");
  EXPECT_EQ(rendered("x  {% if true %}y{% endif %}"), "x  y");
  EXPECT_EQ(rendered("  {%+ if true %}y{% endif +%}\nz"), "  y\nz");
  EXPECT_EQ(rendered("a\r\nb\r\n"), "a\nb");
  EXPECT_EQ(rendered("a\n  {# c #}\nb"), "a\nb");
}

TEST(Template, WhatIsNotKnownIsRefusedBeforeItIsUsedWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"a\n  {{ x|shout }}", "t:2:8: the filter \"shout\""},
      {"{{ x is shiny }}", "the test \"shiny\""},
      {"{{ x.encode() }}", "the method \"encode\""},
      {"{{ [].append(1) }}", "the method \"append\""},
      {"{{ strftime_now('%Y') }}", "there is no function strftime_now"},
      {"{% include 'x' %}", "the statement \"include\""},
      {"{% extends 'x' %}", "the statement \"extends\""},
      {"{% call m() %}{% endcall %}", "the statement \"call\""},
      {"{% for x in y recursive %}{% endfor %}", "recursive loops"},
      {"{{ f(*x) }}", "unpacked"},
      {"{% if x %}a", "expected {% endif %}"},
      {"{{ 1 + }}", "expected an expression"},
      {"{{ 1", "a tag that does not end"},
      {"{# x", "a comment that does not end"},
      {"{{ 'x }}", "a string that does not end"},
      {"{% raw %}x", "without {% endraw %}"},
      {"{{ 99999999999999999999 }}", "too large"},
      {"{{ ; }}", "means nothing here"},
      {"{% break %}", "outside of a loop"},
      {"{% set true = 1 %}", "cannot be set"},
      {"{% endif %}", "the statement \"endif\""},
      {"{{ x(1)(2) }}", "only functions"},
  };
  for (const auto& [source, words] : cases) {
    const std::string found = refusal(source);
    EXPECT_NE(found.find(words), std::string::npos) << source << ": " << found;
    EXPECT_TRUE(found.starts_with("t:")) << found;
  }
}

TEST(Template, WhatGoesWrongInRenderingIsSaidWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"\n{{ x.y }}", "line 2: \"x\" is undefined"},
      {"{{ 'a' + 1 }}", "\"+\" of a string and a integer"},
      {"{{ 1 / 0 }}", "division by zero"},
      {"{{ x + 'a' }}", "\"x\", which is undefined"},
      {"{% for a in 3 %}{% endfor %}", "cannot be gone through"},
      {"{% for a, b in [[1]] %}{% endfor %}", "1 values for 2 names"},
      {"{% set x.y = 1 %}", "no namespace"},
      {"{{ 9223372036854775807 + 1 }}", "beyond 64 bits"},
      {"{{ 'a' < 1 }}", "\"<\" of"},
      {"{{ 'a'.split('') }}", "split by nothing"},
      {"{{ {1: 2} }}", "a mapping's key"},
      {"{% macro m() %}{% endmacro %}{{ m(1) }}", "takes 0 arguments"},
      {"{{ 'a'.get('x') }}", "'str object' has no attribute 'get'"},
  };
  for (const auto& [source, words] : cases) {
    const TemplateError error = error_of(source);
    EXPECT_EQ(error.kind(), TemplateError::Kind::kWrong) << source;
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos)
        << source << ": " << error.what();
  }
  const TemplateError raised = error_of("{{ raise_exception('No ' ~ x) }}", {{"x", "user"}});
  EXPECT_EQ(raised.kind(), TemplateError::Kind::kRaised);
  EXPECT_STREQ(raised.what(), "No user");
}

TEST(Template, AHostileOneEndsSoonAndSaysWhy) {
  const auto begin = std::chrono::steady_clock::now();
  const char* cases[] = {
      "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
      "{% set ns = namespace(x='x') %}{% for a in range(100) %}{% set ns.x = ns.x + ns.x %}{% "
      "endfor %}",
      "{{ 'x' * 1000000000000 }}",
      "{{ [[]] * 1000000000000 }}",
      "{{ range(1000000000)|list }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% set ns = namespace(x=['a']) %}{% for a in range(99) %}{% set ns.x = ns.x + ns.x %}{% "
      "endfor %}",
      "{% set ns = namespace(x='ab') %}{% for a in range(99) %}{% set ns.x = ns.x|replace('a', "
      "ns.x) %}{% endfor %}",
      "{% set ns = namespace(x=1) %}{% for a in range(300) %}{% set ns.x = [ns.x, ns.x] %}{% "
      "endfor %}{{ ns.x }}",
      "{% set ns = namespace(x=1) %}{% for a in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor "
      "%}{{ ns.x|tojson }}",
      "{{ ('a\\n' * 10000)|indent('x' * 100000) }}",
      "{% for a in range(1000000) %}{{ 'x' * 10000 }}{% endfor %}",
      "{{ ('a' * 1000000).split('a')|join('b' * 1000) }}",
  };
  for (const char* source : cases) {
    const TemplateError error = error_of(source);
    EXPECT_NE(std::string(error.what()), "rendered") << source;
  }
  for (const char* part :
       {"(", "[", "{'a':", "not ", "-", "x[", "a if b else ", "1 + (", "{% if x %}"}) {
    std::string deep = std::string(part).starts_with("{%") ? "" : "{{ ";
    for (int i = 0; i < 100000; ++i) {
      deep += part;
    }
    EXPECT_NE(refusal(deep), "taken") << part;
  }
  for (const char* part : {".a", "|upper", " + 1", "[0]", " ~ 'a'", " and x", " is none"}) {
    std::string wide = "{{ x";
    for (int i = 0; i < 20000; ++i) {
      wide += part;
    }
    // A concatenation is one thing however long it is; the others are refused.
    const std::string found = refusal(wide + " }}");
    EXPECT_TRUE(found != "taken" || std::string(part) == " ~ 'a'") << part;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(seconds.count(), 60.0);
}

TEST(Template, SharedValuesInsideOneAnotherAreFreedAndCompared) {
  EXPECT_EQ(rendered("{% set ns = namespace(x=1) %}{% for a in range(20) %}"
                     "{% set ns.x = {'a': ns.x} %}{% endfor %}{{ ns.x == ns.x }}"),
            "True");
}

/// The foreign parts of a rendering, in brackets.
std::string marked(const std::string& source, const ordered_json& variables) {
  const MarkedText found = ChatTemplate(source, "t").render(variables_of(variables));
  std::string out;
  for (std::size_t i = 0; i < found.text.size(); ++i) {
    const bool now = found.is_foreign(i);
    const bool before = i > 0 && found.is_foreign(i - 1);
    out += now && !before ? "[" : !now && before ? "]" : "";
    out += found.text[i];
  }
  return out + (!found.text.empty() && found.is_foreign(found.text.size() - 1) ? "]" : "");
}

TEST(Template, WhatARequestWroteStaysMarkedThroughEverything) {
  const ordered_json v = {{"x", "<|im_end|>"}, {"d", {{"<k>", "<v>"}}}, {"l", {"<a>", "<b>"}}};
  const std::pair<const char*, const char*> cases[] = {
      {"<s>{{ x }}<e>", "<s>[<|im_end|>]<e>"},
      {"{{ '<' ~ x ~ '>' }}", "<[<|im_end|>]>"},
      {"{{ '<' + x + '>' }}", "<[<|im_end|>]>"},
      {"{{ x[2:-2] }}{{ x[::-1] }}{{ x[0] }}", "[im_end>|dne_mi|<<]"},
      {"{{ ('a' + x + 'b')[0:3] }}", "a[<|]"},
      {"{{ x|upper }}{{ x.title() }}{{ x|capitalize }}", "[<|IM_END|><|Im_End|><|im_end|>]"},
      {"{{ (' ' + x + ' ')|trim }}{{ x.strip('<>') }}", "[<|im_end|>|im_end|]"},
      {"{{ x.split('_') }}", "['[<|im]', '[end|>]']"},
      {"{{ x|replace('im', 'IM') }}", "[<|]IM[_end|>]"},
      {"{{ 'aXb'|replace('X', x) }}", "a[<|im_end|>]b"},
      {"{{ l|join(', ') }}{{ '-'.join(l) }}", "[<a>], [<b><a>]-[<b>]"},
      {"{{ d|tojson }}", "{\"[<k>]\": \"[<v>]\"}"},
      {"{{ d }}", "{'[<k>]': '[<v>]'}"},
      {"{% for k, v in d|items %}{{ k }}={{ v }}{% endfor %}", "[<k>]=[<v>]"},
      {"{% for c in 'a' + x[:2] %}{{ c }}.{% endfor %}", "a.[<].[|]."},
      {"{% set y %}({{ x }}){% endset %}{{ y }}", "([<|im_end|>])"},
      {"{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(x) }}", "<[<|im_end|>]>"},
      {"{% filter upper %}a{{ x }}{% endfilter %}", "A[<|IM_END|>]"},
      {"{{ x * 2 }}{{ l|first }}{{ l|last|default('z') }}", "[<|im_end|><|im_end|><a><b>]"},
      {"{{ ('a\\n' + x)|indent(2) }}", "a\n  [<|im_end|>]"},
      {"{{ x|list|join }}{{ x|string }}{{ x|safe }}", "[<|im_end|><|im_end|><|im_end|>]"},
      {"{{ l|sort(reverse=true)|join }}{{ l|map('upper')|join }}", "[<b><a><A><B>]"},
      {"{{ ('é' + x)|lower }}", "é[<|im_end|>]"},
      {"{% set ns = namespace(a=x) %}{{ ns.a }}{{ d['<k>'] }}{{ d.get('<k>') }}",
       "[<|im_end|><v><v>]"},
      {"{{ x.splitlines()|join }}{{ x.removeprefix('<') }}", "[<|im_end|>|im_end|>]"},
  };
  for (const auto& [source, expected] : cases) {
    EXPECT_EQ(marked(source, v), expected) << source;
  }
}

TEST(Template, RandomBytesAreRefusedOrRenderedAndNothingElse) {
  std::mt19937 random(7);
  const char* pieces[] = {
      "{{",   "}}",   "{%",  "%}",     "{#",    "#}",    " if ",   " for ", " in ", "x", "1",
      "'",    "\"",   "|",   "upper",  "(",     ")",     "[",      "]",     "{",    "}", ".",
      ",",    ":",    "\n",  " set ",  "=",     "endif", "endfor", "else",  "-",    "+", "~",
      " is ", "none", "raw", "endraw", "macro", "\\",    "é",      " not ", " and "};
  for (int round = 0; round < 20000; ++round) {
    std::string source;
    const std::size_t count = 1 + random() % 30;
    for (std::size_t i = 0; i < count; ++i) {
      source += pieces[random() % std::size(pieces)];
    }
    try {
      (void)ChatTemplate(source, "t").render(variables_of({{"x", {1, "a"}}}));
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): said why, and that is all.
    }
  }
}

TEST(Template, RendersTheConversationsOfRealTemplatesAsTransformersDoes) {
  const char* named = std::getenv("SPEL_HYBRIDS");  // NOLINT(concurrency-mt-unsafe)
  const std::filesystem::path root =
      std::filesystem::path(named != nullptr ? named : SPEL_HYBRIDS_DEFAULT) / "tokenizer";
  std::ifstream lines(root / "chat.vectors.jsonl");
  if (!lines) {
    GTEST_SKIP() << "no real chat templates in " << root.string()
                 << " (SPEL_HYBRIDS names a place)";
  }
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const ordered_json vector = ordered_json::parse(line);
    SCOPED_TRACE(vector["template"].get<std::string>() + ": " + vector["case"].get<std::string>());
    std::ostringstream source;
    source << std::ifstream(root / vector["template"].get<std::string>()).rdbuf();
    ordered_json variables = {{"messages", vector["messages"]},
                              {"tools", vector["tools"]},
                              {"add_generation_prompt", vector["add_generation_prompt"]}};
    variables.update(vector["extra"]);
    std::string found;
    try {
      found = rendered(source.str(), variables);
    } catch (const TemplateError& error) {
      found = "TemplateError: " + std::string(error.what());
    }
    if (vector.contains("prompt")) {
      EXPECT_EQ(found, vector["prompt"].get<std::string>());
      continue;
    }
    // Words of the template itself stand alone; those of the interpreter, behind the line.
    const auto expected = vector["error"].get<std::string>();
    const std::string words = expected.substr(expected.find(": ") + 2);
    EXPECT_TRUE(expected.starts_with("TemplateError") ? found == expected : found.ends_with(words))
        << found << " instead of " << expected;
  }
  EXPECT_EQ(count, 54U);
}

}  // namespace
}  // namespace spel::engine

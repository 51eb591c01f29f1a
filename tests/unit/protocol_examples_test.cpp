// SPDX-License-Identifier: BSD-2-Clause
//
// PROTOCOL.md is right: its examples, executed in order against a fresh store, give the answers
// that it shows, and it speaks of every method, every parameter and every error.
//
// In a fenced block a line that begins with `-->` starts a request, `<--` its answer, `---`
// something done over NBD: open VOLUME, close VOLUME, write VOLUME OFFSET LENGTH. Other lines go on
// with what the line before them began.
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "common/control/method.hpp"
#include "common/control/refusal.hpp"
#include "tests/unit/control_fixture.hpp"

namespace vellum::control {
namespace {

using json = nlohmann::json;

enum class Mark { request, answer, deed };

struct Step {
  Mark mark = Mark::deed;
  std::string text;
  size_t line = 0;  // of PROTOCOL.md
};

std::vector<std::string> document() {
  const char* root = std::getenv("VELLUM_SOURCE_ROOT");
  std::ifstream file(std::string(root != nullptr ? root : ".") + "/common/control/PROTOCOL.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::optional<Mark> mark_of(const std::string& line) {
  if (line.rfind("-->", 0) == 0) return Mark::request;
  if (line.rfind("<--", 0) == 0) return Mark::answer;
  if (line.rfind("---", 0) == 0) return Mark::deed;
  return std::nullopt;
}

std::vector<Step> steps() {
  std::vector<Step> all;
  bool fenced = false;
  size_t number = 0;
  for (const std::string& line : document()) {
    ++number;
    if (line.rfind("```", 0) == 0) {
      fenced = !fenced;
    } else if (const auto mark = mark_of(line); fenced && mark) {
      all.push_back({*mark, line.substr(3), number});
    } else if (fenced && !all.empty()) {
      all.back().text += ' ' + line;
    }
  }
  return all;
}

bool matches(const json& shown, const json& given);

// PROTOCOL.md, section 4.
bool is_volume(const json& given) {
  json shown{{"name", "<text>"},         {"id", "<integer>"},           {"uuid", "<uuid>"},
             {"size", "<integer>"},      {"created", "<time>"},         {"provision", "<text>"},
             {"snapshots", "<integer>"}, {"parent", "<any>"},           {"attached", "<any>"},
             {"destroyed", "<any>"},     {"time_remaining_ms", "<any>"}};
  return matches(shown, given) && given["attached"].is_boolean() &&
         given["destroyed"].is_boolean() &&
         (given["parent"].is_null() || given["parent"].is_string());
}

// Whether `given` is what `shown` says, placeholders included.
bool matches(const json& shown, const json& given) {
  if (shown == "<any>") return true;
  if (shown == "<volume>") return is_volume(given);
  if (shown == "<integer>") return given.is_number_unsigned();
  if (shown == "<text>") return given.is_string() && !given.get<std::string>().empty();
  if (shown == "<uuid>") return given.is_string() && is_like(given, kUuidForm);
  if (shown == "<time>") return given.is_string() && is_like(given, kTimeForm);
  if (shown.type() != given.type() || !shown.is_structured()) return shown == given;
  if (shown.size() != given.size()) return false;
  for (const auto& [key, value] : shown.items()) {
    if (shown.is_object() && !given.contains(key)) return false;
    const json& other = shown.is_object() ? given.at(key) : given.at(std::stoul(key));
    if (!matches(value, other)) return false;
  }
  return true;
}

class ProtocolExamples : public ControlTest {
 protected:
  void TearDown() override {
    attached_.clear();
    ControlTest::TearDown();
  }

  void perform(const std::string& deed) {
    std::istringstream words(deed);
    std::string verb;
    std::string volume;
    uint64_t offset = 0;
    size_t length = 0;
    words >> verb >> volume;
    if (verb == "open") {
      auto opened = store_->open_export(volume);
      ASSERT_TRUE(opened.ok()) << opened.error().message;
      attached_[volume] = std::move(*opened);
    } else if (verb == "close") {
      ASSERT_EQ(attached_.erase(volume), 1U) << deed;
    } else {
      ASSERT_EQ(verb, "write") << deed;
      ASSERT_TRUE(words >> offset >> length) << deed;
      write(volume, offset, std::string(length, 'x'));
    }
  }

  std::map<std::string, std::shared_ptr<store::Export>> attached_;
};

TEST_F(ProtocolExamples, GiveTheAnswersThatAreShown) {
  size_t answers = 0;
  std::string received;
  for (const Step& step : steps()) {
    SCOPED_TRACE("PROTOCOL.md:" + std::to_string(step.line));
    if (step.mark == Mark::request) {
      EXPECT_EQ(received, "") << "the request before this one shows no answer";
      received = dispatcher_->handle(step.text);
    } else if (step.mark == Mark::answer) {
      const json shown = json::parse(step.text, nullptr, false);
      ASSERT_FALSE(shown.is_discarded()) << step.text;
      EXPECT_TRUE(matches(shown, json::parse(received, nullptr, false)))
          << "shown: " << shown << "\ngiven: " << received;
      received.clear();
      ++answers;
    } else {
      perform(step.text);
    }
  }
  EXPECT_EQ(received, "");
  EXPECT_GT(answers, 30U);
}

TEST_F(ProtocolExamples, ShowASuccessOfEveryMethod) {
  std::set<std::string> shown;
  std::string method;
  for (const Step& step : steps()) {
    const json message = json::parse(step.text, nullptr, false);
    if (!message.is_object()) continue;
    if (step.mark == Mark::request) method = message.value("method", "");
    if (step.mark == Mark::answer && message.contains("result")) shown.insert(method);
  }
  for (const Method& known : methods()) {
    EXPECT_EQ(shown.count(std::string(known.name)), 1U) << known.name << " has no example";
  }
  EXPECT_EQ(shown.size(), methods().size());
}

TEST_F(ProtocolExamples, DescribeEveryParameter) {
  std::map<std::string, std::set<std::string>> described;
  std::string section;
  for (const std::string& line : document()) {
    if (line.rfind("### ", 0) == 0) section = line.substr(4);
    const size_t end = line.find("`: ");
    if (line.rfind("- `", 0) == 0 && end != std::string::npos) {
      described[section].insert(line.substr(3, end - 3));
    }
  }
  for (const Method& method : methods()) {
    std::set<std::string> taken;
    for (const Parameter& each : method.parameters) taken.insert(std::string(each.name));
    EXPECT_EQ(described[std::string(method.name)], taken) << method.name;
  }
}

TEST_F(ProtocolExamples, ListEveryErrorWithItsWord) {
  std::map<int, std::string> listed;
  for (const std::string& line : document()) {  // | code | word | meaning |
    std::istringstream row(line);
    std::string bar;
    std::string word;
    int code = 0;
    if (row >> bar >> code >> bar >> word && line[0] == '|') listed[code] = word;
  }
  for (int i = 0; i <= static_cast<int>(Errc::timeout); ++i) {
    const Code code = code_of(static_cast<Errc>(i));
    EXPECT_EQ(listed[static_cast<int>(code)], reason(code));
  }
  for (const Code code :
       {Code::parse_error, Code::invalid_request, Code::method_not_found, Code::internal_error}) {
    EXPECT_EQ(listed[static_cast<int>(code)], reason(code));
  }
}

}  // namespace
}  // namespace vellum::control

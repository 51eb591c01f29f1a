// SPDX-License-Identifier: BSD-2-Clause
#include "common/control/dispatcher.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "common/control/message.hpp"
#include "common/control/method.hpp"

namespace vellum::control {
namespace {

int64_t now_milliseconds() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
}

std::vector<Method> make_methods() {
  std::vector<Method> all;
  for (auto part : {volume_methods(), snapshot_methods(), query_methods(), store_methods()}) {
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  for (Method& method : all) {
    if (method.changes) method.parameters.push_back(optional("request_id", Kind::request_id));
  }
  const auto by_name = [](const Method& a, const Method& b) { return a.name < b.name; };
  std::sort(all.begin(), all.end(), by_name);
  return all;
}

const Method* find_method(std::string_view name) {
  const auto same_name = [name](const Method& method) { return method.name == name; };
  const auto method = std::find_if(methods().begin(), methods().end(), same_name);
  return method == methods().end() ? nullptr : &*method;
}

std::string line_of(const Request& request, const Result<std::string>& result) {
  if (result.ok()) return result_line(request.id, *result);
  return refusal_line(request.id, refusal_of(result.error()));
}

// The answer, also to a notification.
std::string answer(Request& request, store::Store& store, const ServerFacts& facts,
                   int64_t started) {
  const Method* method = find_method(request.method);
  if (method == nullptr) {
    return refusal_line(request.id,
                        {Code::method_not_found, "there is no method " + in_quotes(request.method) +
                                                     ": server.info lists those that are"});
  }
  if (auto refusal = check_parameters(request.method, method->parameters, request.params)) {
    return refusal_line(request.id, *refusal);
  }
  const Arguments arguments(std::move(request.params));
  return line_of(request, method->handler(Call{store, facts, started, method->name, arguments}));
}

// A line that is no request at all is answered; a notification with wrong parameters is not.
bool is_silent(const Request& request) {
  return request.notification &&
         (!request.refusal || request.refusal->code == Code::invalid_params);
}

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> all = make_methods();
  return all;
}

Dispatcher::Dispatcher(store::Store& store, ServerFacts facts)
    : store_(store), facts_(std::move(facts)), started_(now_milliseconds()) {}

std::string Dispatcher::handle(std::string_view line) {
  if (line.size() > kLineLengthMax) return line_too_long();
  Request request;
  try {
    request = parse_request(line);
    std::string text = request.refusal ? refusal_line(request.id, *request.refusal)
                                       : answer(request, store_, facts_, started_);
    return is_silent(request) ? std::string() : text;
  } catch (const std::exception& error) {
    const Refusal refusal{Code::internal_error,
                          std::string("the server could not answer: ") + error.what()};
    return request.notification ? std::string() : refusal_line(request.id, refusal);
  }
}

std::string Dispatcher::line_too_long() {
  return refusal_line(nullptr,
                      {Code::invalid_request, "the line is too long: a request has at most " +
                                                  std::to_string(kLineLengthMax) + " bytes"});
}

}  // namespace vellum::control

/* SPDX-License-Identifier: MIT */
/*
 * containers.cpp: what lines.py asks about beside real programs: the standard library's containers,
 * algorithms and strings, whose functions inline deeply into one another. It is never run.
 */
#include <algorithm>
#include <deque>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {
struct record {
    std::string name;
    std::vector<int> values;
    std::optional<std::string> note;
    std::variant<int, std::string> kind;
    bool operator<(const record &other) const {
        return std::tie(name, values) < std::tie(other.name, other.values);
    }
};

class shelf {
    std::map<std::string, std::vector<record>> by_name;
    std::unordered_map<std::string, std::shared_ptr<record>> shared;
    std::set<record> sorted;
    std::deque<std::unique_ptr<record>> queue;
    std::list<std::function<void(const record &)>> listeners;

  public:
    void add(const std::string &name, int value) {
        auto &list = by_name[name];
        list.push_back({name, {value, value + 1}, std::nullopt, value});
        list.back().values.insert(list.back().values.begin(), {1, 2, 3});
        if (value % 3 == 0)
            list.back().note = name + "!";
        sorted.insert(list.back());
        shared.emplace(name, std::make_shared<record>(list.back()));
        queue.push_front(std::make_unique<record>(list.back()));
        for (auto &listener : listeners)
            listener(list.back());
    }
    void listen(std::function<void(const record &)> listener) {
        listeners.push_back(std::move(listener));
    }
    std::vector<record> largest(size_t count) const {
        std::vector<record> all;
        for (auto &[name, list] : by_name)
            std::copy(list.begin(), list.end(), std::back_inserter(all));
        std::sort(all.begin(), all.end(), [](const record &a, const record &b) {
            return std::accumulate(a.values.begin(), a.values.end(), 0) >
                   std::accumulate(b.values.begin(), b.values.end(), 0);
        });
        all.resize(std::min(count, all.size()));
        return all;
    }
    size_t forget(const std::string &name) {
        while (!queue.empty() && queue.front()->name == name)
            queue.pop_front();
        shared.erase(name);
        return by_name.erase(name);
    }
};

template <class Number> std::string joined(const std::vector<Number> &numbers) {
    std::ostringstream text;
    for (auto number : numbers)
        text << number << ", ";
    return text.str();
}
} // namespace

int main(int argc, char **argv) {
    shelf all;
    int seen = 0;
    all.listen([&seen](const record &one) { seen += (int)one.values.size(); });
    for (int i = 0; i < argc; i++) {
        struct local {
            static std::string twice(const std::string &text) {
                return text + text;
            }
        };
        try {
            all.add(local::twice(argv[i]), i);
            if (argc > 100)
                throw std::make_tuple(i, std::string(argv[i]));
        } catch (const std::tuple<int, std::string> &thrown) {
            std::cerr << std::get<1>(thrown) << '\n';
        }
    }
    for (auto &one : all.largest(3))
        std::cout << one.name << ' ' << joined(one.values)
                  << joined(std::vector<double>(one.values.begin(), one.values.end())) << '\n';
    return (int)all.forget(argv[0]) + seen;
}

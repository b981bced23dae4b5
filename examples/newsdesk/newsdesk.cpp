// SPDX-License-Identifier: MIT
// newsdesk: a small news server's day, with three faults in its use of memory.
// docs/tutorial-leak.md finds them. Built with -DMENDED it has none.
//
// In the morning articles come in and are read, readers come and go; in the evening only the
// headlines stay, for the archive.
#include "memtrace/memtrace.h"

#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

// The same numbers on each run.
class Dice {
  public:
    unsigned roll(unsigned sides) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<unsigned>(state >> 33) % sides;
    }

  private:
    unsigned long long state = 1;
};

const char *const topic_names[] = {"international-affairs", "markets-and-companies",
                                   "science-and-medicine", "football-and-athletics",
                                   "weather-and-harvest"};

class Topics {
  public:
    Topics() {
        for (const char *name : topic_names) {
            numbers.emplace(name, static_cast<int>(numbers.size()));
        }
    }

    int find(const char *word) const {
#ifdef MENDED
        auto found = numbers.find(std::string_view(word));
#else
        auto found = numbers.find(word); // makes a std::string of each word
#endif
        return found != numbers.end() ? found->second : -1;
    }

  private:
#ifdef MENDED
    std::map<std::string, int, std::less<>> numbers;
#else
    std::map<std::string, int> numbers;
#endif
};

struct Article {
    int topic;
    std::string text;
};

struct Headline {
    int topic;
    char words[60];
};

class Archive {
  public:
#ifdef MENDED
    void add(const Article &article) {
        if (pages.empty() || pages.back().size() == pages.back().capacity()) {
            pages.emplace_back();
            pages.back().reserve(1024);
        }
        pages.back().push_back(headline_of(article));
        count++;
    }

  private:
    std::deque<std::vector<Headline>> pages;
#else
    void add(const Article &article) {
        headlines.push_back(std::make_unique<Headline>(headline_of(article)));
        count++;
    }

  private:
    std::deque<std::unique_ptr<Headline>> headlines;
#endif

    static Headline headline_of(const Article &article) {
        Headline headline = {article.topic, {}};
        article.text.copy(headline.words, sizeof headline.words - 1);
        return headline;
    }

  public:
    size_t count = 0;
};

// Which articles a reader wants to see.
struct Filter {
    std::vector<bool> topics;
    char query[200];
};

Filter *compile_filter(const Topics &topics, const char *query) {
    Filter *filter = new Filter{std::vector<bool>(5), {}};
    std::strncpy(filter->query, query, sizeof filter->query - 1);
    filter->topics[static_cast<size_t>(topics.find(query))] = true;
    return filter;
}

class Reader {
  public:
    Reader(const Topics &topics, const char *query) : filter(compile_filter(topics, query)) {
    }

    void leave() {
        delete filter;
        filter = nullptr;
    }

    void time_out() {
#ifdef MENDED
        delete filter;
#endif
        filter = nullptr; // nobody frees it
    }

  private:
    Filter *filter;
};

class Desk {
  public:
    void receive(unsigned length) {
        Article article = {static_cast<int>(dice.roll(5)), std::string(length, 'x')};
        for (unsigned word = 0; word < 20; word++) {
            topics.find(topic_names[dice.roll(5)]);
        }
        articles.push_back(std::move(article));
        archive.add(articles.back());
    }

    void serve_reader() {
        Reader reader(topics, topic_names[dice.roll(5)]);
        if (dice.roll(100) < 7) {
            reader.time_out();
        } else {
            reader.leave();
        }
    }

    void morning() {
        for (unsigned i = 0; i < 8000; i++) {
            receive(2000 + dice.roll(3000));
            serve_reader();
        }
    }

    void evening() {
        articles.clear();
        articles.shrink_to_fit();
    }

    size_t headlines() const {
        return archive.count;
    }

  private:
    Dice dice;
    Topics topics;
    Archive archive;
    std::deque<Article> articles;
};

} // namespace

int main() {
    Desk desk;
    desk.morning();
    MEMTRACE_MARK("evening");
    desk.evening();
    MEMTRACE_MARK("night");
    std::printf("%zu headlines in the archive\n", desk.headlines());
    return 0;
}

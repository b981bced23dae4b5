/* SPDX-License-Identifier: MIT */
/*
 * pass_report.h: the report of both compiler plugins: which functions of a unit have a frame word,
 * which do not and why. The environment variable MEMTRACE_PASS_REPORT names a file that all
 * compiler processes of a build append to. C++17.
 */
#ifndef INSTRUMENT_PASS_REPORT_H
#define INSTRUMENT_PASS_REPORT_H

#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

class pass_report {
  public:
    /* One function. `stores`: 0: left out. `calls`: those that may allocate. */
    void add(const std::string &function, const std::string &place, unsigned stores, unsigned calls,
             const std::string &reason) {
        if (wanted()) {
            text += stores != 0 ? "instrumented\t" : "left-out\t";
            text += reason + '\t' + function + '\t' + place;
            text += "\tstores:" + std::to_string(stores) + " calls:" + std::to_string(calls) + '\n';
        }
    }

    /* The end of the unit: one write, so that the units of a parallel build do not mix. False: the
     * file cannot be written. */
    bool write_out() {
        if (text.empty()) {
            return true;
        }
        int file = open(path(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (file < 0) {
            return false;
        }
        flock(file, LOCK_EX); /* for the first line; without locks it may come twice */
        struct stat status;
        if (fstat(file, &status) == 0 && status.st_size == 0) {
            text.insert(0, "# memtrace pass report 1\n");
        }
        bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
        text.clear();
        return close(file) == 0 && written;
    }

    static const char *path() {
        return getenv("MEMTRACE_PASS_REPORT");
    }

  private:
    static bool wanted() {
        return path() && *path();
    }

    std::string text;
};

#endif

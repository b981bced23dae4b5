// SPDX-License-Identifier: MIT

// program.go: calls C's malloc from Go in many ways, each with a size of its own, and prints for each
// size the functions that were on the goroutine's stack, as Go's runtime sees them.
package main

/*
#include <stdlib.h>

extern void goAgain(size_t size);
extern void goGrow(void);
extern void goPanic(void);

static void *take(size_t size) { return malloc(size); }
static void takeAgain(size_t size) { goAgain(size); }

// Often from one place, on a stack that does not change; in between Go runs on its own.
static void takeMany(size_t size, int count, int panics) {
    for (int i = 0; i < count; i++) {
        void *volatile block = malloc(size);
        free(block);
        if (i % 10 == 5) {
            goGrow();
        }
    }
    if (panics) {
        goPanic();
    }
}
*/
import "C"

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

const rounds = 50 // of each call, on threads that change

var (
	lock  sync.Mutex
	seen  = map[int]string{} // by size: how often a call takes it, and the functions
	grown atomic.Int64
)

// note writes down who called take, from the innermost on.
func note(size, count int) {
	var counters [4096]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters[:])])
	var names []string
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		names = append(names, frame.Function)
	}
	lock.Lock()
	seen[size] = fmt.Sprint(count, " ", strings.Join(names, ";"))
	lock.Unlock()
}

//go:noinline
func take(size int) {
	note(size, 1)
	C.take(C.size_t(size))
}

const many = 40

//go:noinline
func takeMany(size int, panics C.int) {
	note(size, many)
	C.takeMany(C.size_t(size), many, panics)
}

//export goGrow
func goGrow() {
	grow(100)
	if grown.Add(1)%64 == 0 {
		runtime.GC()
	}
}

//export goPanic
func goPanic() { panic("through C") }

//go:noinline
func grow(level int) int {
	var room [512]byte
	room[level] = byte(level)
	if level == 0 {
		return int(room[0])
	}
	return grow(level-1) + int(room[level])
}

//go:noinline
func panicsThroughC(size int) {
	defer func() { recover() }()
	takeMany(size, 1)
}

//export goAgain
func goAgain(size C.size_t) { take(int(size)) }

//go:noinline
func callBack(size int) { C.takeAgain(C.size_t(size)) }

// deep needs more stack than a goroutine begins with: it is copied meanwhile.
//
//go:noinline
func deep(level, size int) int {
	var room [256]byte
	room[level%256] = byte(level)
	if level == 0 {
		take(size)
		return int(room[0])
	}
	return deep(level-1, size) + int(room[level%256])
}

type taker interface{ takeIt(size int) }
type number struct{ more int }
type text string

//go:noinline
func (n *number) takeIt(size int) { take(size + n.more) }

//go:noinline
func (t text) takeIt(size int) { take(size + len(t)) }

//go:noinline
func throughInterface(which taker, size int) { which.takeIt(size) }

//go:noinline
func apply[T any](value T, do func(T)) { do(value) }

func inlined(size int) { take(size) }

//go:noinline
func inPanic(size int) {
	defer func() { recover() }()
	defer func() { take(size) }()
	panic("on purpose")
}

//go:noinline
func collecting(size int) {
	rubbish := make([][]byte, 16)
	for i := range rubbish {
		rubbish[i] = make([]byte, 4096)
	}
	runtime.GC()
	take(size + len(rubbish[0]) - 4096)
}

var calls = []func(size int){
	take,
	inlined,
	callBack,
	func(size int) { deep(300, size) },
	func(size int) { throughInterface(&number{2000}, size-2000) },
	func(size int) { throughInterface(text("four"), size-4) },
	func(size int) { apply(size, func(size int) { take(size) }) },
	inPanic,
	collecting,
	func(size int) { apply("unused", func(string) { callBack(size) }) },
	func(size int) { takeMany(size, 0) },
	panicsThroughC,
}

// each calls all, with sizes from first on.
func each(first int) {
	for round := 0; round < rounds; round++ {
		for i, call := range calls {
			call(first + 2*i)
			runtime.Gosched()
		}
	}
}

func main() {
	var group sync.WaitGroup
	pprof.StartCPUProfile(io.Discard) // looks at stacks at any time
	each(93001)
	for worker := 1; worker <= 4; worker++ {
		group.Add(1)
		go func(first int, locked bool) {
			defer group.Done()
			if locked {
				runtime.LockOSThread()
			}
			each(first)
		}(93001+1000*worker, worker%2 == 0)
	}
	group.Wait()
	pprof.StopCPUProfile()
	var sizes []int
	for size := range seen {
		sizes = append(sizes, size)
	}
	sort.Ints(sizes)
	for _, size := range sizes {
		fmt.Println(size, seen[size])
	}
	os.Exit(3)
}
